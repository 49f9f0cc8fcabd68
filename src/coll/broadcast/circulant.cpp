// Circulant broadcast: B blocks in B - 1 + ceil(log2 p) rounds, the fewest possible, for any p.
//
// Source   J. L. Traeff: Round-optimal n-block broadcast schedules in logarithmic time.
//          arXiv 2312.11236, 2023. Here after its definition, see shapes/circulant_blocks.hpp.
// Needs    nothing: any p >= 1, any n >= 0, any root; blocks may be empty.
// Cost     (B-1+q) (alpha + n/B beta), q = ceil(log2 p) (exact when B divides n and messages go out
//          in their order; two fifths more at most where blocks run ahead of their rounds). B is
//          the knob `blocks`, 8 where it is left open; the best one is sqrt((q-1) n beta / alpha).
// Scratch  none
// When     long messages and more than a few ranks: close to n beta, like a pipelined chain, but
//          after log2 p instead of p blocks.
// Order    moves data only.
//
// p = 3, root 0, B = 2, blocks A B: q = 2, three rounds.
//                 rank 0    rank 1    rank 2
//   start         A B
//   round 0       A B                 A
//   round 1       A B       B         A
//   round 2       A B       A B       A B
#include "ir/algorithm.hpp"
#include "shapes/binomial.hpp"
#include "shapes/circulant_blocks.hpp"

namespace paceline {
namespace {

int cuts(const Problem&, const Knobs& knobs) { return knobs.blocks > 0 ? knobs.blocks : 8; }

void build(const Problem& pb, const Knobs& knobs, Builder& b) {
  const int v = position_of(pb.rank, pb.root, pb.ranks);
  for (const BlockRound& round : block_rounds({pb.ranks, cuts(pb, knobs)}, v)) {
    if (round.sends >= 0)
      b.send(rank_at(round.to, pb.root, pb.ranks), {b.output(round.sends)});
    if (round.receives >= 0)
      b.recv(rank_at(round.from, pb.root, pb.ranks), {b.output(round.receives)});
  }
}

Cost cost(const Problem& pb, const Knobs& knobs) {
  const double blocks = cuts(pb, knobs);
  const double rounds = pb.ranks > 1 ? blocks - 1 + ceil_log2(pb.ranks) : 0;
  return {.rounds = rounds, .volume = rounds / blocks, .reduced = 0};
}

}  // namespace

extern const Algorithm broadcast_circulant{
    .collective = Collective::broadcast, .name = "circulant", .cuts = cuts, .build = build,
    .cost = cost, .takes = kTakesBlocks};

}  // namespace paceline
