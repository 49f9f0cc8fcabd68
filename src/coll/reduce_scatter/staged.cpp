// Staged reduce_scatter: ranks of a node show each other what is theirs to sum.
//
// Source   elementary: the first half of the two-shot allreduce.
// Needs    ranks of one node. Any p >= 1, any n >= 0; operands stay in rank order.
// Cost     B meetings; per rank (p-1)/p n copied in, (p-1)/p n gamma.
// Scratch  2 (p-1)/p n / B
// When     on one node.
// Order    rank order from left to right: same bits in every run.
//
// p = 2, one block, units A B; a digit is a contribution, * is final.
//              rank 0              rank 1
//              buffer    stage     buffer    stage
//   start      A0 B0               A1 B1
//   show       A0 B0     B0        A1 B1     A1
//   meet
//   sum        A*                  B*
#include "base/str.hpp"
#include "coll/staged.hpp"
#include "ir/algorithm.hpp"

namespace paceline {
namespace {

int cuts(const Problem&, const Knobs& knobs) { return blocks_of(knobs); }

std::optional<Reason> rejects(const Problem& pb) {
  if (pb.ranks > kSourcesAtOnce && !pb.canonical)
    return Reason{str("a rank sums at most ", kSourcesAtOnce, " units at once"), "circulant"};
  return {};
}

void build(const Problem& pb, const Knobs& knobs, Builder& b) {
  const int p = pb.ranks, r = pb.rank, blocks = blocks_of(knobs);
  const Directed shown(b, b.input(0), blocks);
  for (int turn = 0; turn < blocks; ++turn) {
    const int at = block_at(turn, blocks);
    const auto block = [&](int unit) { return b.input(unit * blocks + at); };
    for (int k = 1; k < p; ++k) {
      const int to = (r + k) % p;
      b.copy(block(to), shown.at(r, to, turn, block(to)));
    }
    meet(b);
    std::vector<Segment> all;   // in rank order
    for (int rank = 0; rank < p; ++rank)
      all.push_back(rank == r ? block(r) : shown.at(rank, r, turn, block(r)));
    const Segment target = b.output(r * blocks + at);
    sum(b, all, target);
    b.finish(target);
  }
}

Cost cost(const Problem& pb, const Knobs& knobs) {
  const double share = double(pb.ranks - 1) / pb.ranks;
  return {.rounds = pb.ranks > 1 ? double(blocks_of(knobs)) : 0.0, .reduced = share,
          .copied = share};
}

}  // namespace

extern const Algorithm reduce_scatter_staged{
    .collective = Collective::reduce_scatter, .name = "staged", .rejects = rejects, .cuts = cuts,
    .build = build, .cost = cost, .takes = kTakesBlocks, .access = Access::staging,
    .bits = Bits::by_rank};

}  // namespace paceline
