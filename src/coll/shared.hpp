// Helpers of algorithms over buffers that all ranks reach.
#pragma once

#include <algorithm>
#include <vector>

#include "coll/sums.hpp"
#include "ir/algorithm.hpp"

namespace paceline {

// Number of pieces that the message, or a rank's part of it, is taken in, one after the other.
inline int blocks_of(const Knobs& knobs) { return knobs.blocks > 0 ? knobs.blocks : 1; }

// Piece that has that turn: from the end, since what the caller wrote last is in the caches.
inline int block_at(int turn, int blocks) { return blocks - 1 - turn; }

// Every rank tells all others that it has come this far, and waits to be told. Before a rank has
// met its peers it must not touch their buffers; after it has met them again they may be gone.
inline void meet(Builder& b) {
  const int p = b.problem().ranks, r = b.problem().rank;
  for (int k = 1; k < p; ++k) b.signal((r + k) % p);
  for (int k = 1; k < p; ++k) b.wait((r - k + p) % p);
}

// target = the same block of every rank's input, in rank order; `partial` is scratch for as much,
// needed beyond kSourcesAtOnce ranks.
inline void sum_everywhere(Builder& b, const Segment& input, const Segment& target,
                           const Segment& partial) {
  const int p = b.problem().ranks;
  std::vector<Segment> sources;
  for (int rank = 0; rank < p; ++rank) sources.push_back(p > 1 ? b.of_peer(rank, input) : input);
  sum(b, sources, target, partial);
  b.finish(target);
}

}  // namespace paceline
