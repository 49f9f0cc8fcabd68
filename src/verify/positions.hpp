// Conditions of the engine on algorithms whose ranks claim positions.
#pragma once

#include "verify/verify.hpp"

namespace paceline {

// When a rank of such an algorithm begins, it knows its position and whether it is the root, but
// not where the root is. So all that a position does, except which ranks it signals, must be the
// same wherever else the root is.
Verdict check_positions(const Algorithm& algorithm, const Shape& shape);

// The rank at each position, in all orders in which ranks can come.
std::vector<std::vector<int>> all_orders(int ranks);

}  // namespace paceline
