// Staged reduce: the others show their vectors, block by block, and the root sums them.
//
// Source   elementary: the broadcast of the same name, turned around.
// Needs    ranks of one node. Any p >= 1, any root, any n >= 0; operands stay in rank order.
// Cost     B signals from each peer to the root, B - 4 back; n copied in by each peer, (p-1) n
//          gamma at the root, at the same time but for one block.
// Scratch  min(B, 4) n / B
// When     on one node: short messages, and long ones of 2 or 3 ranks.
// Order    rank order from left to right: same bits in every run.
//
// p = 2, blocks A B C, root 0; slots x y, where there were two.
//   rank 0                A + x     tell   B + y     C + x
//   rank 1     A -> x     B -> y    wait   C -> x
#include "base/str.hpp"
#include "coll/staged.hpp"
#include "ir/algorithm.hpp"

namespace paceline {
namespace {

int cuts(const Problem&, const Knobs& knobs) { return blocks_of(knobs); }

std::optional<Reason> rejects(const Problem& pb) {
  if (pb.ranks > kSourcesAtOnce && !pb.canonical)
    return Reason{str("the root sums at most ", kSourcesAtOnce, " vectors at once"), "two_shot"};
  return {};
}

void build(const Problem& pb, const Knobs& knobs, Builder& b) {
  const Turns shown(b, b.output(0), blocks_of(knobs), kAhead);
  const int blocks = blocks_of(knobs);
  for (int turn = 0; turn < blocks; ++turn) {
    const int at = block_at(turn, blocks);
    const Segment block = b.output(at), slot = shown.slot(turn, block);
    if (pb.rank != pb.root) {
      if (turn >= kAhead) b.wait(pb.root);   // it has summed what is in the slot
      b.copy(b.input(at), slot);
      b.signal(pb.root);
    } else {
      wait_for_others(b);
      sum(b, of_everybody(b, slot, b.input(at)), block);
      b.finish(block);
      if (turn + kAhead < blocks) signal_others(b);
    }
  }
}

Cost cost(const Problem& pb, const Knobs& knobs) {
  if (pb.ranks == 1) return {};
  return {.rounds = double(blocks_of(knobs)), .reduced = pb.ranks - 1.0, .copied = 1};
}

}  // namespace

extern const Algorithm reduce_staged{
    .collective = Collective::reduce, .name = "staged", .rejects = rejects, .cuts = cuts,
    .build = build, .cost = cost, .takes = kTakesBlocks, .access = Access::staging,
    .bits = Bits::by_rank};

}  // namespace paceline
