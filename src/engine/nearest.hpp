// Nearest lines: which cache lines of their stages are near those who write and read them.
//
// Each cache line is kept track of by one part of the processor, which its address selects. What is
// written on one core and read on another travels by there: between the same two cores some lines
// take half as long again as others (docs/design/0019-straight.md). Ranks that have just met pass
// each line to and fro, tell each other how long it took, and all take the same two.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <utility>

#include "transport/stage.hpp"

namespace paceline {

struct Passing {
  // Ranks that let others run wait for nothing here, and then all keep the lines they have.
  bool willing = true;
  double most_s = 0.01;   // who has no core of its own would take far longer than it is worth
  std::function<double()> now_s;
  std::function<void(int)> late = [](int) {};   // now and then, the position waited for; may throw
};

// Two lines, of calls in turn, the same on all ranks; nothing: as they are. `stages`: by position,
// the one at `rank` is this rank's. Every rank of these calls it once, before the first call.
std::optional<std::pair<int, int>> nearest_lines(std::span<const Stage> stages, int rank,
                                                 const Passing& passing);

}  // namespace paceline
