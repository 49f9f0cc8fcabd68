// Topology: the machine that a communicator's choices assume, and the nodes of its ranks. Results
// are equal on all ranks.
#pragma once

#include <string>
#include <vector>

#include "model/machine.hpp"
#include "runtime/assumed.hpp"
#include "runtime/compile.hpp"
#include "runtime/progress/session_state.hpp"

namespace paceline {

// Returns the machine of the group. `nodes`: of every rank of the world; empty: all share one.
// `between`: the machine if the group spans nodes.
Assumed assumed_in(const Group& group, const std::vector<int>& nodes, const Assumed& between);
bool on_one_node(const Group& group, const std::vector<int>& nodes);
int count_nodes(const Group& group, const std::vector<int>& nodes);
// Returns the node of each rank of the group; nodes are numbered in the order of their first ranks.
// Empty if all ranks share one node, or each has its own.
std::vector<int> nodes_in(const Group& group, const WorldConfig& config);
StagingLimits staging_limits_of(const Group& group, const WorldConfig& config);
// Returns text such as "2 nodes of 4 ranks". `nodes`: as nodes_in() returns them.
std::string described_nodes(const std::vector<int>& nodes);

}  // namespace paceline
