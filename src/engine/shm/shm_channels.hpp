// ShmChannels: the two ShmChannels of a communicator, so that an urgent call overtakes another one.
//
// The calls of a channel run one after the other. A call that is more urgent than the previous one
// takes the other channel; every other call takes the channel of the previous one. So all ranks
// choose alike. The second channel has its own memory, which its first call opens.
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

  // The first channel: for calls of one priority, and for facts that are equal on both.
  ShmChannel& first() { return channels_[0]; }
  const ShmChannel& first() const { return channels_[0]; }

  // Returns the second channel if a call of this priority would take it; else null.
  ShmChannel* second_if_next(int priority) {
    return place_of(priority) == 1 ? &channels_[1] : nullptr;
  }
  // Returns the channel of a call of this priority, which starts now.
  ShmChannel& take(int priority) {
    if (priority == priority_ && now_ == 0) [[likely]] return channels_[0];
    now_ = place_of(priority);
    priority_ = priority;
    return channels_[now_];
  }

  // These cover both channels; see shm_channel.hpp.
  const std::optional<Error>& lacking() const;
  bool is_called();   // includes the second channel if a peer has opened it
  bool is_idle() const;
  void look_around();
  bool has_unattached_peers();
  std::vector<int> needed_by();   // ranks that have yet to find a stage that they may need
  void close();                   // frees their memory

 private:
  bool has_second(int position) const {   // true if that peer has opened its second stage
    return position != first().rank() && first().shows_second(position);
  }
  std::size_t place_of(int priority) const { return priority > priority_ ? 1 - now_ : now_; }

  StagingBuffers& staging_;
  std::array<std::uint64_t, 2> contexts_;
  std::size_t now_ = 0;   // channel of the last call
  int priority_ = 0;      // priority of the last call
  std::array<ShmChannel, 2> channels_;
};

}  // namespace paceline
