// What the ranks of a communicator have around them: the machine that choices reckon with, and
// which of them share a node. Equal on all ranks.
#pragma once

#include <string>
#include <vector>

#include "model/machine.hpp"
#include "runtime/assumed.hpp"
#include "runtime/compile.hpp"
#include "runtime/progress/session_state.hpp"

namespace paceline {

// `nodes`: of every rank of the world; empty: they share one. `between`: for ranks of several
// nodes.
Assumed assumed_in(const Group& group, const std::vector<int>& nodes, const Assumed& between);
bool on_one_node(const Group& group, const std::vector<int>& nodes);
int count_nodes(const Group& group, const std::vector<int>& nodes);
// The node of each of its ranks, numbered by their first ranks; empty where they share one, or each
// has its own.
std::vector<int> nodes_in(const Group& group, const WorldConfig& config);
StagingLimits staging_limits_of(const Group& group, const WorldConfig& config);
// "2 nodes of 4 ranks"; `nodes` as nodes_in() has them.
std::string described_nodes(const std::vector<int>& nodes);

}  // namespace paceline
