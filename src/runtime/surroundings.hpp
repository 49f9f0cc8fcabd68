// What the ranks of a communicator have around them: the machine that choices reckon with, whether
// they share a node, and their groups there. Equal on all ranks.
#pragma once

#include <vector>

#include "model/machine.hpp"
#include "runtime/locality.hpp"
#include "runtime/session.hpp"

namespace paceline {

// `nodes`: of every rank of the world; empty: they share one. `between`: for ranks of several
// nodes.
Assumed assumed_in(const Group& group, const std::vector<int>& nodes, const Assumed& between);
bool on_one_node(const Group& group, const std::vector<int>& nodes);
Grouping grouping_in(const Group& group, const WorldConfig& config);

// Throws a refusal for an algorithm that wants groups of ranks of several nodes, where there are
// none: it would take all ranks for those of one.
void check_nodes(const Algorithm& algorithm, const Grouping& nodes);

}  // namespace paceline
