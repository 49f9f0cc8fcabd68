// Staged gather: the others show their units, block by block, and the root copies them out.
//
// Source   elementary: the reduce of the same name, which puts side by side instead of summing.
// Needs    ranks of one node. Any p >= 1, any root, any n >= 0.
// Cost     B signals from each peer to the root, B - 4 back; n/p copied in by each peer, n copied
//          out by the root, at the same time but for one block. n the whole result.
// Scratch  min(B, 4) n / (p B)
// When     on one node.
// Order    no arithmetic.
//
// p = 2, blocks A B C of rank 1's unit, root 0; slots x y, where there were two.
//   rank 0                x -> A    tell   y -> B     x -> C
//   rank 1     A -> x     B -> y    wait   C -> x
#include "coll/staged.hpp"
#include "ir/algorithm.hpp"

namespace paceline {
namespace {

int cuts(const Problem&, const Knobs& knobs) { return blocks_of(knobs); }

void build(const Problem& pb, const Knobs& knobs, Builder& b) {
  const int p = pb.ranks, blocks = blocks_of(knobs);
  const Turns shown(b, b.output(0), p > 1 ? blocks : 0, kAhead);
  for (int turn = 0; turn < blocks; ++turn) {
    const auto block = [&](int unit) { return unit * blocks + block_at(turn, blocks); };
    const Segment mine = b.input(block(pb.rank)), kept = b.output(block(pb.rank));
    if (pb.rank != pb.root) {
      if (turn >= kAhead) b.wait(pb.root);   // it has taken what is in the slot
      b.copy(mine, shown.slot(turn, kept));
      b.signal(pb.root);
      continue;
    }
    b.copy(mine, kept);   // rather than wait
    wait_for_others(b);
    for (int k = 1; k < p; ++k) {
      const int from = (pb.root + k) % p;
      const Segment taken = b.output(block(from));
      b.copy(b.of_peer(from, shown.slot(turn, taken)), taken);
    }
    if (turn + kAhead < blocks) signal_others(b);
  }
}

Cost cost(const Problem& pb, const Knobs& knobs) {
  if (pb.ranks == 1) return {};
  return {.rounds = double(blocks_of(knobs)), .copied = 1};
}

}  // namespace

extern const Algorithm gather_staged{
    .collective = Collective::gather, .name = "staged", .cuts = cuts, .build = build,
    .cost = cost, .takes = {.blocks = true}, .access = Access::staging};

}  // namespace paceline
