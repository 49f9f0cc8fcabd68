// Two binary trees over the same ranks, one for each half of a message: where one tree has a rank
// between others, the other has it at an end, so that both directions of its link are busy.
//
// A tree is laid over positions: 0 is the root, and the parent of v has v's lowest set bit moved up
// by one place, or lacks it where that would lie outside. The positions are the ranks in the first
// tree; in the second they count from the last rank downwards where there is an even number of
// ranks, else from rank 1 round to rank 0.
#pragma once

#include <algorithm>
#include <bit>
#include <vector>

namespace paceline {

struct DoubleTree {
  int ranks;

  struct Node {
    int parent = -1;             // all are ranks
    int depth = 0;
    std::vector<int> children;   // by position: those before the node itself, then those behind
    std::size_t before = 0;      // how many of them are before it
  };

  Node node(int tree, int rank) const {
    const int v = other_name(tree, rank, -1);
    Node out;
    if (v > 0) out.parent = other_name(tree, parent(v), 1);
    for (int u = v; u > 0; u = parent(u)) ++out.depth;
    const int unit = v == 0 ? 1 << 30 : v & -v;
    if (v > 0 && unit > 1) out.children.push_back(other_name(tree, v - unit / 2, 1));
    out.before = out.children.size();
    int behind = std::min(unit / 2, static_cast<int>(std::bit_floor(unsigned(ranks))));
    while (behind > 0 && v + behind >= ranks) behind /= 2;
    if (behind > 0) out.children.push_back(other_name(tree, v + behind, 1));
    return out;
  }

  // Edges from the root to the farthest rank, in either tree.
  int height() const { return ranks > 1 ? std::bit_width(unsigned(ranks) - 1) : 0; }

 private:
  int parent(int v) const {
    const int unit = v & -v, above = (v ^ unit) | 2 * unit;
    return above < ranks ? above : v ^ unit;
  }
  // The position of a rank (way -1), or the rank at a position (way 1).
  int other_name(int tree, int of, int way) const {
    if (tree == 0) return of;
    return ranks % 2 == 0 ? ranks - 1 - of : (of + way + ranks) % ranks;
  }
};

}  // namespace paceline
