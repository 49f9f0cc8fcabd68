#include "engine/shm/positions.hpp"

namespace paceline {
namespace {

// Number of looks between two searches for a mismatch, which take cache lines from the peers.
constexpr int kLooks = 64;

}  // namespace

std::vector<int> Positions::missing() {
  std::vector<bool> has_come(ranks_.size(), false);
  for (std::size_t position = 0; position < ranks_.size(); ++position)
    if (const int rank = claims::rank_at(claimed(), call_, int(position)); rank >= 0)
      has_come[static_cast<std::size_t>(rank)] = true;
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < has_come.size(); ++rank)
    if (!has_come[rank]) ranks.push_back(static_cast<int>(rank));
  return ranks;
}

std::optional<CallMismatch> Positions::mismatch() {
  if (++looks_ % kLooks != 0) return {};
  return shm_->find_mismatch(call_);
}

}  // namespace paceline
