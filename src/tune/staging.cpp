#include "tune/staging.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/str.hpp"
#include "coll/sums.hpp"
#include "tune/block_lengths.hpp"

namespace paceline {
namespace {

constexpr std::size_t kMostSegments = 65536;
constexpr std::size_t kSlotLoss = 128;       // bytes of a stage that each slot's rounding takes
constexpr std::size_t kLongestElement = 16;  // bytes
constexpr double kOfStage = 0.9;             // usable part of a stage
Cut cut_symmetric(const Algorithm& a, int ranks, std::size_t bytes) {
  Cut cut = kUncut;
  if (!a.takes.blocks) return cut;
  const BlockLengths& l = kBlockLengths;
  const std::size_t part = bytes / static_cast<std::size_t>(ranks);
  if (ranks > kSourcesAtOnce)
    cut.knobs.blocks =
        static_cast<int>(std::min(part / l.symmetric_sum + 1, l.most_symmetric_sums));
  else if (part >= std::size_t(l.symmetric_blocks) * l.symmetric_part)
    cut.knobs.blocks = l.symmetric_blocks;
  return cut;
}

std::size_t block_of(const Row& row, int ranks, std::size_t bytes) {   // bytes
  const BlockLengths& l = kBlockLengths;
  const auto part = [&](int of) { return bytes / static_cast<std::size_t>(of); };
  if (row.flows) return std::clamp(part(l.flow_part), l.flow_least, l.flow_most);
  if (ranks > 2)
    return std::clamp(static_cast<std::size_t>(ranks) * l.rank_slice, l.shared_least,
                      l.shared_most);
  if (bytes <= l.pair_whole) return l.pair_whole;
  return std::max(std::clamp(part(l.pair_part), l.pair_least, l.pair_most),
                  std::min(part(l.pair_long_part), l.pair_long_most));
}

std::optional<Cut> cut_staged(const Row& row, int ranks, const ChoiceInputs& now, bool named) {
  if (now.stage_bytes == 0) return {};
  Cut cut = kUncut;
  if (!row.algorithm->takes.blocks) {
    const bool has_room = row.room * double(now.bytes) <= kOfStage * double(now.stage_bytes);
    return named || has_room ? std::optional(cut) : std::nullopt;
  }
  // Slots, at most three for each rank and some, are rounded up to cache lines.
  const std::size_t lost = kSlotLoss * (3 * static_cast<std::size_t>(ranks) + 4);
  if (now.stage_bytes <= 2 * lost) return {};
  const double there = kOfStage * double(now.stage_bytes - lost);
  const auto longest = static_cast<std::size_t>(there / row.room);
  const std::size_t block = std::min(block_of(row, ranks, now.bytes), longest);
  const bool flows = row.flows && now.bytes >= kBlockLengths.flow_from;
  const std::size_t least = flows ? std::size_t(kBlockLengths.flow_pieces) : 1;
  const std::size_t blocks = std::max(least, (now.bytes + block - 1) / block);
  if (blocks > std::size_t(kMostBlocks)) return {};   // signals are counted in 16 bits
  cut.knobs.blocks = static_cast<int>(blocks);
  return cut;
}

}  // namespace

std::optional<Cut> cut_in_memory(const Row& row, const Problem& p, const ChoiceInputs& now,
                                 bool named) {
  switch (row.algorithm->access) {
    case Access::symmetric: return cut_symmetric(*row.algorithm, p.ranks, now.bytes);
    case Access::staging: return cut_staged(row, p.ranks, now, named);
    default: return kUncut;
  }
}

// A segment takes at most twice its length, in slots that are rounded up to cache lines and whose
// blocks are all as long as the longest one.
std::optional<int> segments_with_room(const Choice& choice, const Problem& p,
                                      const ChoiceInputs& now, int window) {
  const auto units = static_cast<std::size_t>(units_of(p));
  const std::size_t blocks = units * static_cast<std::size_t>(
                                         choice.algorithm->cuts(p, choice.cut.knobs));
  const std::size_t lost =
      2 * kSlotLoss + 2 * blocks * kLongestElement + units * (kSlotLoss + kLongestElement);
  int segments = choice.cut.segments;
  while (true) {
    const std::size_t each = now.stage_bytes / std::size_t(std::min(segments, window));
    if (each <= 2 * lost) return {};
    const std::size_t longest = (each - lost) / 2;
    const std::size_t needed = (now.bytes + longest - 1) / longest;
    if (needed <= std::size_t(segments)) return segments;
    if (needed > kMostSegments) return {};
    segments = static_cast<int>(needed);
  }
}

bool claims_in_segments(const Algorithm& a) {
  return a.claims() && a.collective == Collective::allreduce;
}

int segments_in_stage(Problem p, const ChoiceInputs& now, const Choice& choice) {
  p.rank = 0;   // slots are alike on all ranks
  const Schedule one = build(*choice.algorithm, p, choice.cut.knobs);
  int blocks = 0;
  for (const Slot& slot : one.slots) {
    int most = 0;
    for (const Segment& s : slot.shapes) most = std::max(most, s.first + s.blocks - s.origin);
    blocks += most;
  }
  const double shown = double(blocks) / one.blocks() * double(now.bytes);
  const double lost = double(kSlotLoss * (one.slots.size() + 1) + kLongestElement * blocks);
  const double room = kOfStage * double(now.stage_bytes);
  if (shown + lost <= room || room <= kClaimedWindow * lost) return 1;
  const double segments = kClaimedWindow * shown / (room - kClaimedWindow * lost);
  return static_cast<int>(std::ceil(std::min(segments, double(kMostSegments))));
}

void check_claimed(const Algorithm& a, const Cut& wish) {
  if (!a.claims() || wish.segments <= 1) return;
  if (!claims_in_segments(a))
    fail(Fault::usage, name_of(a.collective), "/", a.name, ": ", wish.segments, " segments, but ",
         "its ranks leave early, and would overwrite what others have yet to add; use blocks= ",
         "instead, or another algorithm.");
}

}  // namespace paceline
