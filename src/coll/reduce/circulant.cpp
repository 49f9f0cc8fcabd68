// Circulant reduce: a circulant broadcast of B blocks run backwards, adding on the way.
//
// Source   J. L. Traeff: Round-optimal n-block broadcast schedules in logarithmic time.
//          arXiv 2312.11236, 2023. Here after its definition, see shapes/circulant_blocks.hpp.
// Needs    commutative op. Any p >= 1, any n >= 0, any root; blocks may be empty.
// Cost     (B-1+q) (alpha + n/B beta + n/B gamma), q = ceil(log2 p) (when B divides n and messages
//          go out in their order each term is exact, and a part of gamma is hidden; else a tenth
//          more at most). B is the knob `blocks`, 8 where it is left open; the best one is
//          sqrt((q-1) n beta / alpha).
// Scratch  n elements for sums, and two blocks; only the sums where the transport adds as it
//          receives, none at the root.
// When     long messages and more than a few ranks: close to n beta.
// Order    a tree that depends on p, the root and the block's number: same bits in every run.
//
// p = 3, root 0, B = 2, blocks A B; a digit is a contribution, * is final.
//                 rank 0       rank 1       rank 2
//   start         A0  B0       A1  B1       A2  B2
//   round 0       A0  B02      A1  B1       A12 B2
//   round 1       A0  B*       A1  B1       A12 B2
//   round 2       A*  B*       A1  B1       A12 B2
#include "coll/rejects.hpp"
#include "ir/algorithm.hpp"
#include "shapes/binomial.hpp"
#include "shapes/circulant_blocks.hpp"

namespace paceline {
namespace {

int cuts(const Problem&, const Knobs& knobs) { return knobs.blocks > 0 ? knobs.blocks : 8; }

std::optional<Reason> rejects(const Problem& pb) {
  return unless_commutative(pb, "every block has an order of its own", "linear");
}

void build(const Problem& pb, const Knobs& knobs, Builder& b) {
  const int v = position_of(pb.rank, pb.root, pb.ranks), blocks = cuts(pb, knobs);
  if (pb.ranks == 1) b.copy(b.input(), b.output());
  const Segment sums = v == 0 ? b.output() : b.scratch(b.input());
  const Segment spare[2] = {b.scratch(b.input(0)), b.scratch(b.input(0))};
  std::vector<Segment> held;   // by block: as it was, or its sum so far
  for (int i = 0; i < blocks; ++i) held.push_back(b.input(i));
  const auto of = [&](int block) -> Segment& { return held[static_cast<std::size_t>(block)]; };
  std::size_t came = 0;
  const std::vector<BlockRound> rounds = block_rounds({pb.ranks, blocks}, v);
  for (auto round = rounds.rbegin(); round != rounds.rend(); ++round) {
    if (round->receives >= 0)
      b.send(rank_at(round->from, pb.root, pb.ranks), {of(round->receives)});
    if (round->sends < 0) continue;
    Segment& sum = of(round->sends);
    const Segment arrived = b.as(spare[came++ % 2], sum);
    b.recv(rank_at(round->to, pb.root, pb.ranks), {arrived});
    const Segment target = b.part(sums, sums.first + round->sends, 1);
    b.reduce({sum, arrived}, target);
    sum = target;
  }
  if (v == 0) b.finish(b.output());
}

Cost cost(const Problem& pb, const Knobs& knobs) {
  const double blocks = cuts(pb, knobs);
  const double rounds = pb.ranks > 1 ? blocks - 1 + ceil_log2(pb.ranks) : 0;
  return {.rounds = rounds, .volume = rounds / blocks, .reduced = rounds / blocks};
}

}  // namespace

extern const Algorithm reduce_circulant{
    .collective = Collective::reduce, .name = "circulant", .rejects = rejects, .cuts = cuts,
    .build = build, .cost = cost, .takes = kTakesBlocks};

}  // namespace paceline
