// sweep: every small world in which an algorithm has to keep its contract.
#pragma once

#include <vector>

#include "verify/verify.hpp"

namespace paceline {

// All worlds of 1 to `max_ranks` ranks, the small ones first: the roots 0, 1 and p - 1, apart and
// in place, operands free and in rank order, with and without fused steps, whole and in a pipeline
// of 3 segments with a window of 2. Only what makes a difference for the collective.
std::vector<Shape> sweep(Collective collective, int max_ranks);

}  // namespace paceline
