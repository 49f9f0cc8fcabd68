// The canonical tree of a sum: aligned powers of two, [lo, lo + w) and the rest, in rank order.
#pragma once

#include <utility>
#include <vector>

namespace paceline {

// A subtree's ranks [first, second).
using Subtree = std::pair<int, int>;

// The subtrees that a rank's own meets on its way to the root: the one beside its leaf, the one
// beside both together, and so on. The sum is formed in the same places whoever forms it.
std::vector<Subtree> subtrees_beside(int rank, int ranks);

// An order in which exactly the first so many of them, and nobody else, come before the rank. Of
// each subtree the rank with the highest number comes last, and so it is with all that come later.
std::vector<int> order_after(int rank, int ranks, int subtrees);

}  // namespace paceline
