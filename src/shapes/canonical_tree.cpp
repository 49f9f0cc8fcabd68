#include "shapes/canonical_tree.hpp"

#include <algorithm>
#include <bit>

namespace paceline {

std::vector<Subtree> subtrees_beside(int rank, int ranks) {
  std::vector<Subtree> beside;
  Subtree own{0, ranks};
  while (own.second - own.first > 1) {
    const auto most = static_cast<unsigned>(own.second - own.first - 1);
    const int middle = own.first + static_cast<int>(std::bit_floor(most));
    const bool left = rank < middle;
    beside.emplace_back(left ? middle : own.first, left ? own.second : middle);
    own = {left ? own.first : middle, left ? middle : own.second};
  }
  std::reverse(beside.begin(), beside.end());
  return beside;
}

std::vector<int> order_after(int rank, int ranks, int subtrees) {
  const std::vector<Subtree> beside = subtrees_beside(rank, ranks);
  std::vector<int> order, later;
  for (int other = 0; other < ranks; ++other) {
    if (other == rank) continue;
    const bool before = std::any_of(
        beside.begin(), beside.begin() + subtrees,
        [&](const Subtree& tree) { return tree.first <= other && other < tree.second; });
    (before ? order : later).push_back(other);
  }
  order.push_back(rank);
  order.insert(order.end(), later.begin(), later.end());
  return order;
}

}  // namespace paceline
