#include "tune/staging.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/str.hpp"

namespace paceline {
namespace {

constexpr std::size_t kMostSegments = 65536;
constexpr std::size_t kSlotLoss = 128, kLongestElement = 16;   // bytes

}  // namespace

// A segment takes twice its length at most, in slots whose blocks are as long as the longest and
// which are rounded up to cache lines.
bool fits_staging(Choice& choice, const Problem& p, const ChoiceInputs& now, int most_window) {
  const auto units = static_cast<std::size_t>(units_of(p));
  const std::size_t blocks = units * static_cast<std::size_t>(
                                         choice.algorithm->cuts(p, choice.cut.knobs));
  const std::size_t lost =
      2 * kSlotLoss + 2 * blocks * kLongestElement + units * (kSlotLoss + kLongestElement);
  while (true) {
    const std::size_t each = now.stage_bytes / static_cast<std::size_t>(choice.cut.window);
    if (each <= 2 * lost) break;
    const std::size_t longest = (each - lost) / 2;
    const std::size_t segments = (now.bytes + longest - 1) / longest;
    if (segments <= static_cast<std::size_t>(choice.cut.segments)) return true;
    if (segments > kMostSegments) break;
    choice.cut.segments = static_cast<int>(segments);
    choice.cut.window = std::min(choice.cut.segments, most_window);
  }
  if (most_window == 1) return false;
  choice.cut.window = 1;
  return fits_staging(choice, p, now, most_window > 2 ? 2 : 1);
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
  const double room = 0.9 * double(now.stage_bytes);
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
