#include "runtime/surroundings.hpp"

#include <algorithm>
#include <map>

#include "tune/choose.hpp"

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

Grouping grouping_in(const Group& group, const WorldConfig& config) {
  if (config.group_ranks == 1) return {{}, "no groups: PACELINE_GROUPS=1 forbids them"};
  if (!on_one_node(group, config.nodes)) return {{}, "no groups: the ranks are on several nodes"};
  if (config.localities.empty()) return {{}, "no groups: nothing is known of caches"};
  std::vector<Locality> localities;
  for (int rank : group.ranks) localities.push_back(config.localities[std::size_t(rank)]);
  return grouping_of(localities);
}

}  // namespace paceline
