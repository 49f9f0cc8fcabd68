// ShmGroups: opens and frees the staging buffers of communicators whose ranks share memory, and
// finds those of their peers.
//
// A rank must find the staging buffer that it looks for. So a closed communicator keeps its buffer
// until all its ranks have found it, and a leaving rank waits for them.
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

  // These are called without the lock, for groups with channels. A lack of memory breaks the group
  // and is thrown.

  // Opens this rank's staging buffer, with slots of slot_bytes.
  void open_staging(Group& group, std::size_t slot_bytes = 0);
  // Collective at start-up: opens the buffer, and returns when this rank has found those of all
  // peers and they have found its own. Also throws a timeout error, a lost error, and what
  // WorldConfig::idle throws.
  void attach_together(Group& group, int timeout_ms);

  // These require the lock.
  void add(Group& group);   // gives the group channels if this rank shares memory with peers
  // True if ranks may still look for the buffers of a closed communicator with this context.
  bool is_taken(std::uint64_t context) const;
  // Opens one of the group's channels; throws like open_staging().
  void open_channel(Group& group, ShmChannel& channel, std::size_t slot_bytes);
  void release(Group& group);   // takes the channels of a closed group after its last call
  void free_unneeded();         // frees staging buffers of closed groups that all ranks have found
  void look_around();           // finds the staging buffers that peers have opened
  // Waits until no peer needs this rank's buffers, for at most timeout_ms (0: no limit), or
  // attachers_ms for a peer that waits in one call. Only the first call waits. Releases the lock
  // while it rests, and may throw without it. `may_stop`: calls WorldConfig::idle, whose exceptions
  // end the wait.
  void wait_for_attachers(std::unique_lock<std::mutex>& lock, bool may_stop);

 private:
  void look_for_lost(const Group& group, double& looked_s);   // `looked_s`: time of the last look
  std::vector<int> pending_attachers();

  SessionState& state_;
  Failures& failures_;
  Driver& driver_;
  // Closed groups whose buffers ranks may still look for: context and channels.
  std::vector<std::pair<std::uint64_t, std::unique_ptr<ShmChannels>>> closing_;
  ClosedContexts broken_contexts_;   // of groups that were broken when they were released
  bool has_waited_ = false;   // wait_for_attachers() has been called, or must not wait
};

}  // namespace paceline
