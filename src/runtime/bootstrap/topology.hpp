// What the ranks of a communicator have around them: the machine that choices reckon with, whether
// they share a node, and their groups there. Equal on all ranks.
#pragma once

#include <vector>

#include "model/machine.hpp"
#include "runtime/compile.hpp"
#include "runtime/bootstrap/locality.hpp"
#include "runtime/progress/session_state.hpp"

namespace paceline {

// `nodes`: of every rank of the world; empty: they share one. `between`: for ranks of several
// nodes.
Assumed assumed_in(const Group& group, const std::vector<int>& nodes, const Assumed& between);
bool on_one_node(const Group& group, const std::vector<int>& nodes);
int count_nodes(const Group& group, const std::vector<int>& nodes);
// The node of each of its ranks, numbered by their first ranks; empty where they share one, or each
// has its own, or PACELINE_NUMA_RANKS=1 says so.
std::vector<int> nodes_in(const Group& group, const WorldConfig& config);
StagingLimits staging_limits_of(const Group& group, const WorldConfig& config);
// Of ranks of one node; of several only why there are none: how they lie on these.
Grouping grouping_in(const Group& group, const WorldConfig& config);

}  // namespace paceline
