#include "runtime/topology.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.hpp"

namespace paceline {

Assumed assumed_in(const Group& group, const std::vector<int>& nodes, const Assumed& between) {
  std::map<int, int> ranks_on;
  for (int rank : group.ranks)
    ++ranks_on[nodes.empty() ? 0 : nodes[static_cast<std::size_t>(rank)]];
  if (ranks_on.size() <= 1) return {usual_machine(), "one node"};
  int most = 1;
  for (const auto& [node, ranks] : ranks_on) most = std::max(most, ranks);
  Assumed here = between;
  here.machine.ranks_per_node = most;
  return here;
}

bool on_one_node(const Group& group, const std::vector<int>& nodes) {
  return nodes.empty() || std::all_of(group.ranks.begin(), group.ranks.end(), [&](int rank) {
    return nodes[std::size_t(rank)] == nodes[std::size_t(group.ranks.front())];
  });
}

int count_nodes(const Group& group, const std::vector<int>& nodes) {
  std::set<int> seen;
  for (int rank : group.ranks) seen.insert(nodes.empty() ? 0 : nodes[std::size_t(rank)]);
  return static_cast<int>(seen.size());
}

std::vector<int> nodes_in(const Group& group, const WorldConfig& config) {
  if (on_one_node(group, config.nodes)) return {};
  std::vector<int> seen, found;
  for (int rank : group.ranks) {
    const int node = config.nodes[std::size_t(rank)];
    const auto at = std::find(seen.begin(), seen.end(), node);
    found.push_back(static_cast<int>(at - seen.begin()));
    if (at == seen.end()) seen.push_back(node);
  }
  return seen.size() < found.size() ? found : std::vector<int>{};
}

StagingLimits staging_limits_of(const Group& group, const WorldConfig& config) {
  if (!on_one_node(group, config.nodes)) return {config.node_staging, false};
  return {group.one_node ? group.shm->first().bytes() : 0, group.one_node};
}

std::string described_nodes(const std::vector<int>& nodes) {
  if (nodes.empty()) return "one rank on each node";
  std::map<int, int> ranks_on;
  for (int node : nodes) ++ranks_on[node];
  const auto fewer = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto [least, most] = std::minmax_element(ranks_on.begin(), ranks_on.end(), fewer);
  const std::string ranks = least->second == most->second
                                ? str(most->second) : str(least->second, " to ", most->second);
  return str(ranks_on.size(), " nodes of ", ranks, " ranks");
}

}  // namespace paceline
