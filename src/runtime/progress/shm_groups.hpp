// ShmGroups: looks after the shm channels of communicators whose ranks share memory: their staging
// buffers are opened, found by the peers, and freed when nobody needs them any more.
//
// A rank that looks for a peer's staging buffer has to find it: so a closed communicator's stays
// until all its ranks have found it, and a rank that leaves waits for them.
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

  // Without the lock; of groups with channels. A lack of memory breaks the group and is thrown.
  // Opens this rank's staging buffer, with slots of so many bytes.
  void open_staging(Group& group, std::size_t slot_bytes = 0);
  // Collective, while ranks start: opens it, and returns when this rank has found those of all
  // peers and they have found this one's. Throws as well a timeout error, that a peer is lost, and
  // what WorldConfig::idle throws.
  void attach_together(Group& group, int timeout_ms);

  // With the lock held.
  void add(Group& group);   // gives it channels, where some of its ranks share memory with this one
  // Whether ranks may still look for the buffers of a communicator of this context that is closed.
  bool is_taken(std::uint64_t context) const;
  // Opens one of the group's channels; throws like open_staging().
  void open_channel(Group& group, ShmChannel& channel, std::size_t slot_bytes);
  void release(Group& group);   // one that is closed, and whose last call has ended
  void free_unneeded();         // staging buffers of closed groups that all ranks have found
  void look_around();           // finds the staging buffers that peers have opened
  // Returns when no peer needs what this rank shows, or it has waited too long: timeout_ms (0: no
  // limit), or attachers_ms for a peer that waits in one call. The first call alone waits. Releases
  // the lock while it rests, and may throw without it. `may_stop`: calls WorldConfig::idle, whose
  // exceptions end the wait.
  void wait_for_attachers(std::unique_lock<std::mutex>& lock, bool may_stop);

 private:
  void look_for_lost(const Group& group, double& looked_s);   // `looked_s`: when it last did
  std::vector<int> pending_attachers();

  SessionState& state_;
  Failures& failures_;
  Driver& driver_;
  // Contexts of closed groups, and their channels until all ranks have found what they need.
  std::vector<std::pair<std::uint64_t, std::unique_ptr<ShmChannels>>> closing_;
  ClosedContexts broken_contexts_;   // of groups that were broken when they were released
  bool has_waited_ = false;   // wait_for_attachers() has been called, or is not to wait
};

}  // namespace paceline
