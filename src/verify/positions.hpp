// What the engine relies on where ranks claim positions.
#pragma once

#include "verify/verify.hpp"

namespace paceline {

// Of an algorithm whose positions are claimed: when a rank begins it knows its position and whether
// it is the root, and not where the root is. So what a position does, but for whom it signals, must
// be the same wherever else the root is.
Verdict check_positions(const Algorithm& algorithm, const Shape& shape);

// The rank at each position, in all orders in which ranks can come.
std::vector<std::vector<int>> all_orders(int ranks);

}  // namespace paceline
