#include "engine/scratch.hpp"

#include <algorithm>
#include <bit>

namespace paceline {

ScratchPool::Block ScratchPool::take(std::size_t bytes) {
  if (bytes == 0) return {};
  const std::size_t rounded = std::bit_ceil(std::max<std::size_t>(bytes, 4096));
  const auto fits = std::find_if(free_.begin(), free_.end(),
                                 [&](const Block& block) { return block.bytes == rounded; });
  if (fits == free_.end()) return {std::make_unique_for_overwrite<std::byte[]>(rounded), rounded};
  Block block = std::move(*fits);
  *fits = std::move(free_.back());
  free_.pop_back();
  resting_ -= block.bytes;
  return block;
}

void ScratchPool::give(Block block) {
  if (block.bytes == 0 || resting_ + block.bytes > kMostResting) return;
  resting_ += block.bytes;
  free_.push_back(std::move(block));
}

}  // namespace paceline
