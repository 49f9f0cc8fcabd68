#include "tune/staging.hpp"

#include <algorithm>

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

}  // namespace paceline
