// ShmGroups: looks after the channels of communicators whose ranks share memory: their staging
// buffers are opened, found by the peers, and freed when nobody needs them any more.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/progress/closed.hpp"
#include "runtime/progress/failures.hpp"
#include "runtime/progress/session_state.hpp"

namespace paceline {

class ShmGroups {
 public:
  ShmGroups(SessionState& state, Failures& failures, Driver& driver)
      : state_(state), failures_(failures), driver_(driver) {}

  // Without the lock. They throw a resource error.
  // Opens this rank's staging buffer, with slots for such a call.
  void open_staging(Group& group, std::size_t slot_bytes = 0);
  void attach_together(Group& group, int timeout_ms);   // and its peers theirs

  // With the lock held.
  void add(Group& group);   // gives it channels, where it can have any
  bool is_taken(std::uint64_t context) const;   // its name: ranks may look for what it had
  void open_channel(Group& group, ShmChannel& channel, std::size_t slot_bytes);
  void release(Group& group);   // which is closed; its last request has ended
  void clear();         // what nobody needs any more
  void look_around();   // for what peers show
  // Nothing of this rank is needed after it. Without the lock while it rests.
  void wait_for_attachers(std::unique_lock<std::mutex>& lock, bool may_stop);

 private:
  void look_for_lost(const Group& group, double& looked_s);
  std::vector<int> pending_attachers();

  SessionState& state_;
  Failures& failures_;
  Driver& driver_;
  std::vector<std::pair<std::uint64_t, std::unique_ptr<ShmChannels>>> left_;   // of closed groups
  ClosedContexts spent_;   // those that were broken, whose buffers ranks may still look for
  bool has_waited_ = false;   // for those who have yet to find what it shows
};

}  // namespace paceline
