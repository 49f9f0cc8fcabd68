// Binomial tree over positions 0..p-1 with root 0: the parent of v lacks v's lowest set bit.
#pragma once

#include <algorithm>
#include <vector>

namespace paceline {

// Position relative to the root, and back.
inline int position_of(int rank, int root, int ranks) { return (rank - root + ranks) % ranks; }
inline int rank_at(int position, int root, int ranks) { return (position + root) % ranks; }

struct BinomialTree {
  int ranks;

  int parent(int v) const { return v & (v - 1); }        // of v > 0
  std::vector<int> children(int v) const;                // nearest first: v + 1, v + 2, v + 4, ...
  int size(int v) const { return v == 0 ? ranks : std::min(v & -v, ranks - v); }   // of its subtree
};

inline std::vector<int> BinomialTree::children(int v) const {
  std::vector<int> out;
  for (int mask = 1; v + mask < ranks && (v & mask) == 0; mask <<= 1) out.push_back(v + mask);
  return out;
}

inline int ceil_log2(int n) {
  int q = 0;
  while ((1 << q) < n) ++q;
  return q;
}

}  // namespace paceline
