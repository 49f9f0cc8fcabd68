// Staged allgather: every rank shows its unit, block by block, and copies the others'.
//
// Source   elementary: two copies through shared memory, here by two slots in turn.
// Needs    ranks of one node. Any p >= 1, any n >= 0.
// Cost     B meetings; per rank n/p copied in, n copied out.
// Scratch  2 n / (p B)
// When     on one node.
// Order    no arithmetic.
//
// p = 2, one block, units A B.
//              rank 0              rank 1
//              buffer    stage     buffer    stage
//   start      A                     B
//   show       A         A           B       B
//   meet
//   copy out   A B                 A B
#include "coll/staged.hpp"
#include "ir/algorithm.hpp"

namespace paceline {
namespace {

int cuts(const Problem&, const Knobs& knobs) { return blocks_of(knobs); }

void build(const Problem& pb, const Knobs& knobs, Builder& b) {
  const int p = pb.ranks, r = pb.rank, blocks = blocks_of(knobs);
  const Turns shown(b, b.output(0), p == 2 ? 0 : blocks);
  const Directed swapped(b, b.output(0), p == 2 ? blocks : 0);
  for (int turn = 0; turn < blocks; ++turn) {
    const int at = block_at(turn, blocks);
    const auto block = [&](int unit) { return b.output(unit * blocks + at); };
    const auto slot = [&](int from) {
      if (p == 2) return swapped.at(from, 1 - from, turn, block(from));
      const Segment own = shown.slot(turn, block(from));
      return from == r ? own : b.of_peer(from, own);
    };
    const Segment mine = b.input(r * blocks + at);
    if (p > 1) b.copy(mine, slot(r));
    signal_others(b);
    b.copy(mine, block(r));   // rather than wait
    wait_for_others(b);
    for (int k = 1; k < p; ++k) {
      const int from = (r + k) % p;
      b.copy(slot(from), block(from));
    }
  }
}

Cost cost(const Problem& pb, const Knobs& knobs) {
  if (pb.ranks == 1) return {};
  return {.rounds = double(blocks_of(knobs)), .copied = 1 + 1.0 / pb.ranks};
}

}  // namespace

extern const Algorithm allgather_staged{
    .collective = Collective::allgather, .name = "staged", .cuts = cuts, .build = build,
    .cost = cost, .takes = {.blocks = true}, .access = Access::staging};

}  // namespace paceline
