// Sorted chain allreduce: sums run along the ranks as they are expected to enter, the latest last.
//
// Source   J. Proficz: Improving all-reduce collective operations for imbalanced process arrival
//          patterns. J. Supercomput. 74:3071-3092, 2018. doi 10.1007/s11227-018-2356-z (SLT)
// Needs    commutative op, late ranks known to all; where sums are stable the operation is exact.
//          Any p >= 1, any n >= 0.
// Cost     in B blocks at most 2 (p-2+B) (alpha + n/B beta) + (p-2+B) n/B gamma; after the last one
//          of late ranks that enter one by one (p-2+B) (alpha + n/B beta)
// Scratch  n elements; none where the transport adds as it receives.
// When     long messages in many blocks, few ranks, one late rank or several well apart: then close
//          to n beta is left to do. Two that enter together have 2 n beta left.
// Order    early ranks in rank order, then late ones, the latest last: same bits on every rank, and
//          in every run in which the same ranks are predicted late in the same order.
//
// p = 3, rank 1 is late; a digit is a contribution, * is final.
//                 rank 0    rank 1    rank 2
//   start         0                   2
//   round 0       0                   02
//   it enters     0         1         02
//   round 1       0         *         02
//   round 2       *         *         02
//   round 3       *         *         *
#include "coll/late.hpp"
#include "coll/rejects.hpp"
#include "ir/algorithm.hpp"

namespace paceline {
namespace {

constexpr int kBlocks = 8;

int cuts(const Problem&, const Knobs& knobs) { return knobs.blocks > 0 ? knobs.blocks : kBlocks; }

std::optional<Reason> rejects(const Problem& pb) {
  return unless_commutative(pb, "operands are added as their ranks enter", "tail_direct");
}

// A block on its way to the last rank, which tells the first one the sum.
void add(Builder& b, const std::vector<int>& chain, std::size_t at, int block) {
  const Segment mine = b.input(block), sum = b.output(block);
  const bool last = at + 1 == chain.size();
  if (at > 0) {
    const Segment came = b.scratch(mine);
    b.recv(chain[at - 1], {came});
    b.reduce({came, mine}, sum);
  }
  if (!last) return b.send(chain[at + 1], {at > 0 ? sum : mine});
  if (at == 0) b.copy(mine, sum);
  b.finish(sum);
  if (at > 0) b.send(chain.front(), {sum});
}

void build(const Problem& pb, const Knobs& knobs, Builder& b) {
  const std::vector<int> chain = Sides(pb).in_order();
  const auto at = std::size_t(std::find(chain.begin(), chain.end(), pb.rank) - chain.begin());
  const int blocks = cuts(pb, knobs);
  for (int block = 0; block < blocks; ++block) add(b, chain, at, block);
  if (at + 1 == chain.size()) return;
  for (int block = 0; block < blocks; ++block) {
    b.recv(at > 0 ? chain[at - 1] : chain.back(), {b.output(block)});
    if (at + 2 < chain.size()) b.send(chain[at + 1], {b.output(block)});
  }
}

Cost cost(const Problem& pb, const Knobs& knobs) {
  const double hops = pb.ranks - 1, blocks = cuts(pb, knobs);
  if (pb.ranks == 1) return {};
  // Every rank between sends and receives each block twice.
  return {.rounds = 2 * hops + 2 * (blocks - 1), .volume = 2 * (hops + blocks - 1) / blocks,
          .reduced = (hops + blocks - 1) / blocks};
}

}  // namespace

extern const Algorithm allreduce_sorted_chain{
    .collective = Collective::allreduce, .name = "sorted_chain", .rejects = rejects, .cuts = cuts,
    .build = build, .cost = cost, .takes = kTakesBlocks,
    .arrivals = Arrivals::predicted};

}  // namespace paceline
