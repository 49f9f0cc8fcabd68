// Shared reduce-scatter: every rank sums its unit straight from all inputs.
//
// Source   ours (docs/design/0014-shared-buffers.md); single copies by help of the kernel: T. Ma,
//          G. Bosilca, A. Bouteiller, J. Dongarra: Kernel-assisted and topology-aware MPI
//          collective communications on multi-core/many-core platforms. J. Parallel Distrib.
//          Comput. 73(7):1000-1010, 2013.
// Needs    buffers that all ranks reach. Any p >= 1, equal units; operands stay in rank order.
// Cost     no message but 4 (p-1) signals a rank; (p-1)/p n gamma
// Scratch  none up to 16 ranks, else a unit
// When     buffers of paceline.empty on one node.
// Order    rank order from left to right: same bits in every run.
//
// p = 2, units A B; a digit is a contribution, * is final.
//                 rank 0       rank 1
//   start         A0   B0      A1   B1
//   meet
//   sum           A*                B*
//   meet
#include "coll/shared.hpp"
#include "ir/algorithm.hpp"

namespace paceline {
namespace {

void build(const Problem& pb, const Knobs&, Builder& b) {
  const Segment mine = b.input(pb.rank);
  const Segment partial = pb.ranks > kSourcesAtOnce ? b.scratch(mine) : Segment{};
  meet(b);
  sum_everywhere(b, mine, b.output(pb.rank), partial);
  meet(b);
}

Cost cost(const Problem& pb, const Knobs&) {
  const double share = double(pb.ranks - 1) / pb.ranks;
  return {.rounds = pb.ranks > 1 ? 2.0 : 0.0, .reduced = share};
}

}  // namespace

extern const Algorithm reduce_scatter_symmetric{
    .collective = Collective::reduce_scatter, .name = "symmetric", .build = build, .cost = cost,
    .access = Access::symmetric, .bits = Bits::by_rank};

}  // namespace paceline
