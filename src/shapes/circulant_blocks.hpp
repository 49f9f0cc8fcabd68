// Circulant blocks: the rounds of a broadcast of many blocks on circulant skips.
//
// Positions are ranks counted from the root. With q = ceil(log2 p), in a round of kind k = 0 .. q-1
// every rank sends to the position s(k) on and receives from the one s(k) back, s(q) = p,
// s(k) = ceil(s(k+1) / 2). All have all blocks after blocks - 1 + q rounds, as few as possible.
// Backwards, with sends and receives exchanged, it is a reduction: every rank then sends every
// block exactly once.
#pragma once

#include <vector>

namespace paceline {

// The skips s(0) .. s(q).
std::vector<int> circulant_skips(int ranks);

// Blocks that the position receives and sends in a round of each kind: block e or, if e is
// negative, block q + e of the q rounds before.
std::vector<int> circulant_receives(const std::vector<int>& skips, int position);
std::vector<int> circulant_sends(const std::vector<int>& skips, int position);

struct BlockRound {
  int to, from;            // positions
  int sends, receives;     // blocks; -1: none
};
struct BlockBroadcast {
  int ranks, blocks;
};
std::vector<BlockRound> block_rounds(const BlockBroadcast& broadcast, int position);

}  // namespace paceline
