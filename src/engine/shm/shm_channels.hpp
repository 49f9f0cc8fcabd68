// ShmChannels: the two ShmChannels of a communicator, so that an urgent call overtakes another one.
//
// The calls of a channel go on one after the other. A call that is more urgent than the one before
// it takes the other channel, and every other call the channel of the one before. So the calls
// alone say who takes which, on all ranks alike. The second channel has memory of its own, from the
// first call on that takes it.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "engine/shm/shm_channel.hpp"

namespace paceline {

class ShmChannels {
 public:
  // `ranks`: position -> rank of the transport. The channels' names come from `context`.
  ShmChannels(StagingBuffers& staging, std::uint64_t context, const std::vector<int>& ranks,
              int rank);

  // What is the same for both, and for calls of one priority: the first one.
  ShmChannel& first() { return channels_[0]; }
  const ShmChannel& first() const { return channels_[0]; }

  // The channel of a call of this priority that starts now; null: the first.
  ShmChannel* second_if_next(int priority) {
    return place_of(priority) == 1 ? &channels_[1] : nullptr;
  }
  ShmChannel& take(int priority) {
    if (priority == priority_ && now_ == 0) [[likely]] return channels_[0];
    now_ = place_of(priority);
    priority_ = priority;
    return channels_[now_];
  }

  // Of both, as of one of them (shm_channel.hpp).
  const std::optional<Error>& lacking() const;
  bool is_called();   // of the second one too, where a peer has it
  bool is_idle() const;
  void look_around();
  bool has_unattached_peers();
  std::vector<int> needed_by();   // ranks that have yet to find what they may need
  void take_turns();              // in an order that ranks see (engine/entries.hpp)
  void close();                   // gives their memory back

 private:
  bool has_second(int position) const {   // a peer
    return position != first().rank() && first().shows_second(position);
  }
  std::size_t place_of(int priority) const { return priority > priority_ ? 1 - now_ : now_; }

  StagingBuffers& staging_;
  std::array<std::uint64_t, 2> contexts_;
  std::size_t now_ = 0;   // of the last call
  int priority_ = 0;      // of that
  std::array<ShmChannel, 2> channels_;
};

}  // namespace paceline
