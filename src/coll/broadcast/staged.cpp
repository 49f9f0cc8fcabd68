// Staged broadcast: the root shows its vector, block by block, and its peers copy it out.
//
// Source   elementary: two copies through shared memory, here by a few slots in turn.
// Needs    ranks of one node. Any p >= 1, any root, any n >= 0.
// Cost     B signals from the root to each peer, B - 4 back; n copied in by the root and n out by
//          each peer, at the same time but for one block.
// Scratch  min(B, 4) n / B
// When     on one node.
// Order    no arithmetic.
//
// p = 2, blocks A B C, root 0; slots x y, where there were two.
//   rank 0     A -> x     B -> y     wait   C -> x
//   rank 1                x -> A     tell   y -> B     x -> C
#include "coll/staged.hpp"
#include "ir/algorithm.hpp"

namespace paceline {
namespace {

int cuts(const Problem&, const Knobs& knobs) { return blocks_of(knobs); }

void build(const Problem& pb, const Knobs& knobs, Builder& b) {
  const Turns shown(b, b.output(0), blocks_of(knobs), kAhead);
  const int blocks = pb.ranks > 1 ? blocks_of(knobs) : 0;
  for (int turn = 0; turn < blocks; ++turn) {
    const Segment block = b.output(block_at(turn, blocks)), slot = shown.slot(turn, block);
    if (pb.rank == pb.root) {
      if (turn >= kAhead) wait_for_others(b);   // they have taken what is in the slot
      b.copy(block, slot);
      signal_others(b);
    } else {
      b.wait(pb.root);
      b.copy(b.of_peer(pb.root, slot), block);
      if (turn + kAhead < blocks) b.signal(pb.root);
    }
  }
}

Cost cost(const Problem& pb, const Knobs& knobs) {
  if (pb.ranks == 1) return {};
  const double blocks = blocks_of(knobs);
  return {.rounds = blocks, .copied = 1 + 1 / blocks};
}

}  // namespace

extern const Algorithm broadcast_staged{
    .collective = Collective::broadcast, .name = "staged", .cuts = cuts, .build = build,
    .cost = cost, .takes = {.blocks = true}, .access = Access::staging};

}  // namespace paceline
