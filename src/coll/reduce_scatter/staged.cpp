// Staged reduce_scatter: ranks of a node show each other what is theirs to sum.
//
// Source   elementary: the first half of the sliced allreduce.
// Needs    ranks of one node. Any p >= 1, any n >= 0; operands stay in rank order.
// Cost     B meetings; per rank (p-1)/p n copied in, (p-1)/p n gamma.
// Scratch  2 n / B
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
#include "coll/registry.hpp"
#include "coll/staged.hpp"

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
  std::vector<Turns> shown;   // one for each unit
  for (int unit = 0; unit < p; ++unit) shown.emplace_back(b, b.input(unit * blocks), blocks);
  for (int turn = 0; turn < blocks; ++turn) {
    const auto block = [&](int unit) { return b.input(unit * blocks + turn); };
    const auto slot = [&](int unit) {
      return shown[static_cast<std::size_t>(unit)].slot(turn, block(unit));
    };
    for (int k = 1; k < p; ++k) b.copy(block((r + k) % p), slot((r + k) % p));
    meet(b);
    const Segment target = b.output(r * blocks + turn);
    sum(b, of_everybody(b, slot(r), block(r)), target);
    b.finish(target);
  }
}

Cost cost(const Problem& pb, const Knobs& knobs) {
  const double share = double(pb.ranks - 1) / pb.ranks;
  return {
      .rounds = pb.ranks > 1 ? double(blocks_of(knobs)) : 0.0, .volume = 0, .reduced = share};
}

}  // namespace

const Algorithm reduce_scatter_staged{.collective = Collective::reduce_scatter,
                                      .name = "staged",
                                      .rejects = rejects,
                                      .cuts = cuts,
                                      .build = build,
                                      .cost = cost,
                                      .takes = kTakesBlocks,
                                      .staged = true,
                                      .canonical = true};

}  // namespace paceline
