#include "engine/shm/shm_channels.hpp"

#include <algorithm>

#include "base/random.hpp"

namespace paceline {

ShmChannels::ShmChannels(StagingBuffers& staging, std::uint64_t context,
                         const std::vector<int>& ranks, int rank)
    : staging_(staging),
      contexts_{context, Random::mix(~context)},
      channels_{ShmChannel(staging, contexts_[0], ranks, rank),
                ShmChannel(staging, contexts_[1], ranks, rank)} {}

const std::optional<Error>& ShmChannels::lacking() const {
  return channels_[channels_[0].lacking() ? 0 : 1].lacking();
}

bool ShmChannels::is_called() {
  if (channels_[0].is_called()) return true;
  for (int position = 0; position < channels_[0].ranks(); ++position)
    if (has_second(position)) return channels_[1].is_called();
  return false;
}

bool ShmChannels::is_idle() const {
  return std::ranges::all_of(channels_, [](const ShmChannel& c) { return c.is_idle(); });
}

// Looks only for second stages that are there: a search for a missing one maps all memory of the
// peer.
void ShmChannels::look_around() {
  channels_[0].look_around();
  for (int position = 0; position < channels_[0].ranks(); ++position)
    if (has_second(position)) channels_[1].find(position);
}

bool ShmChannels::has_unattached_peers() {
  return std::ranges::any_of(channels_, [](ShmChannel& c) { return c.has_unattached_peers(); });
}

std::vector<int> ShmChannels::needed_by() {
  std::vector<int> ranks;
  for (ShmChannel& channel : channels_)
    if (channel.is_needed())
      for (int rank : channel.pending_attachers()) ranks.push_back(rank);
  return ranks;
}

void ShmChannels::close() {
  for (const std::uint64_t context : contexts_) staging_.close(context);
}

}  // namespace paceline
