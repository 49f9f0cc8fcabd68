// sweep: every small world in which an algorithm has to keep its contract.
#pragma once

#include <vector>

#include "verify/verify.hpp"

namespace paceline {

// All worlds of 1 to `max_ranks` ranks, the small ones first: the roots 0, 1 and p - 1, apart and
// in place, units of equal and of differing length, operands free and in rank order, with and
// without fused steps, whole and in a pipeline of 3 segments with a window of 2. Only what makes a
// difference for the collective. Knobs are left open.
std::vector<Shape> sweep(Collective collective, int max_ranks);

// Values of the algorithm's knobs that show all that it does with them; none where it has no knobs.
std::vector<Knobs> knob_corners(const Algorithm& algorithm);

// Sets of late ranks. With at most kAllLate ranks: every set, upwards and downwards in turn. With
// more: some drawn sets, of one rank to half of them.
inline constexpr int kAllLate = 7;
std::vector<std::vector<int>> late_sets(int ranks);

// The worlds of the collective, with nodes of every size for an algorithm that knows them, with
// late ranks for one that expects them, and with the ranks of a node not side by side for one that
// is bound to their order (ir/bind.hpp).
std::vector<Shape> shapes_of(const Algorithm& algorithm, int max_ranks);

// These worlds, canonical as well if the algorithm can be; and the whole ones of at most kKnobRanks
// ranks with every corner of the knobs.
inline constexpr int kKnobRanks = 17;
std::vector<Shape> sweep(const Algorithm& algorithm, int max_ranks);

}  // namespace paceline
