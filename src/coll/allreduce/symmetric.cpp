// Shared allreduce: every rank sums its part straight from all inputs, into all outputs.
//
// Source   ours (docs/design/0014-shared-buffers.md); single copies by help of the kernel: T. Ma,
//          G. Bosilca, A. Bouteiller, J. Dongarra: Kernel-assisted and topology-aware MPI
//          collective communications on multi-core/many-core platforms. J. Parallel Distrib.
//          Comput. 73(7):1000-1010, 2013.
// Needs    buffers that all ranks reach. Any p >= 1, any n >= 0; operands stay in rank order.
// Cost     no message but 4 (p-1) signals a rank; (p-1)/p n gamma, and n copied (a rank writes its
//          part of every output). Memory traffic of all ranks together: 2 p n, the least there is.
// Scratch  none up to 16 ranks, else a part of a block
// When     buffers of paceline.empty on one node, from a few KiB on.
// Order    rank order from left to right: same bits on every rank and in every run.
//
// p = 2, one block, parts A B; a digit is a contribution, * is final.
//                 rank 0       rank 1
//   start         A0   B0      A1   B1
//   meet
//   sum           A*   B0      A1   B*
//   spread        A*   B*      A*   B*
//   meet
#include "coll/shared.hpp"
#include "ir/algorithm.hpp"

namespace paceline {
namespace {

// A rank has a part of each block.
int cuts(const Problem& pb, const Knobs& knobs) { return pb.ranks * blocks_of(knobs); }

void build(const Problem& pb, const Knobs& knobs, Builder& b) {
  const int p = pb.ranks, r = pb.rank, blocks = blocks_of(knobs);
  const Segment partial = p > kSourcesAtOnce ? b.scratch(b.input(0)) : Segment{};
  meet(b);
  for (int turn = 0; turn < blocks; ++turn) {
    const int i = block_at(turn, blocks) * p + r;
    sum_everywhere(b, b.input(i), b.output(i),
                   p > kSourcesAtOnce ? b.as(partial, b.input(i)) : partial);
    for (int k = 1; k < p; ++k) b.copy(b.output(i), b.of_peer((r + k) % p, b.output(i)));
  }
  meet(b);
}

Cost cost(const Problem& pb, const Knobs&) {
  const double share = double(pb.ranks - 1) / pb.ranks;
  return {.rounds = pb.ranks > 1 ? 2.0 : 0.0, .reduced = share, .copied = share};
}

}  // namespace

extern const Algorithm allreduce_symmetric{
    .collective = Collective::allreduce, .name = "symmetric", .cuts = cuts, .build = build,
    .cost = cost, .takes = kTakesBlocks, .access = Access::symmetric, .bits = Bits::by_rank};

}  // namespace paceline
