// Binary tree over the consecutive ranks [first, last]: the last is the root, its children are the
// roots of the lower and the upper half of the others. Left, right, own is then rank order.
#pragma once

#include <vector>

namespace paceline {

struct RankRange {
  int first, last;
};

struct PostOrderNode {
  int parent = -1;
  int depth = 0;
  std::vector<int> children;   // in rank order
};

inline PostOrderNode post_order_node(RankRange tree, int rank) {
  PostOrderNode node;
  const auto middle = [&] { return tree.first + (tree.last - tree.first + 1) / 2 - 1; };
  while (rank != tree.last) {
    node.parent = tree.last;
    ++node.depth;
    if (rank <= middle()) tree.last = middle();
    else tree = {middle() + 1, tree.last - 1};
  }
  if (tree.first < tree.last) node.children.push_back(middle());
  if (middle() + 1 < tree.last) node.children.push_back(tree.last - 1);
  return node;
}

// Edges from the root to the farthest rank.
inline int post_order_height(RankRange tree) {
  int most = 0;
  for (int rank = tree.first; rank <= tree.last; ++rank)
    most = post_order_node(tree, rank).depth > most ? post_order_node(tree, rank).depth : most;
  return most;
}

}  // namespace paceline
