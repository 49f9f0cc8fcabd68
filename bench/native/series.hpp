// Several ways to do the same call, timed in turn on this rank: ours, its algorithms, an MPI's own.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "start_line.hpp"

namespace paceline::measure {

// One way to do the call. `rewrite`, which may be empty, writes the input of this rank anew before
// each batch, as training does; it is not timed.
struct Side {
  std::function<void()> call, rewrite;
  int batch = 1;  // calls between two looks at the clock
};

struct Turns {
  int warm_up = 2;  // batches of each side that do not count
  int repeats = 1;
};

// times[side][repetition]: seconds per call on this rank, from an agreed start to the return of the
// last call of a batch. Collective over the ranks of the line, with equal sides and turns. Sides
// alternate; each repetition begins with the next side, so that the first one changes.
// `clock`: in ns.
std::vector<std::vector<double>> alternate(StartLine& line, const std::vector<Side>& sides,
                                           const Turns& turns, std::int64_t (*clock)() = now_ns);

}  // namespace paceline::measure
