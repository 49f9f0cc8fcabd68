// Direct reduce: every block goes straight to its owner, and its sum straight to the root.
//
// Source   elementary: the direct reduce-scatter, then a linear gather.
// Needs    nothing: any p >= 1, any n >= 0, any root, operands stay in rank order.
// Cost     (p-1) (2 alpha + 2 n/p beta + n/p gamma) (exact when p divides n; beyond 16 ranks a part
//          of gamma is hidden)
// Scratch  n elements and a block; a block more where not the root.
// When     long messages whose operands stay in order: least traffic. Rounds grow with p.
// Order    rank order from left to right, whatever the root; beyond 16 ranks in groups, unless the
//          order is to be canonical: same bits in every run, whatever comes first.
//
// p = 3, root 0, blocks A B C; a digit is a contribution, * is final. Received data is in scratch.
//                 rank 0            rank 1            rank 2
//   start         A0   B0   C0      A1   B1   C1      A2   B2   C2
//   round 0       A0 A2             B0 B1             C1 C2
//   round 1       A*                B*                C*
//   round 2       A*   B*                B*                C*
//   round 3       A*   B*   C*           B*                C*
#include "coll/algorithms.hpp"
#include "coll/in_two.hpp"

namespace paceline {
namespace {

void build(const Problem&, const Knobs&, Builder& b) {
  scatter_and_collect(b, reduce_scatter_direct, gather_linear);
}

Cost cost(const Problem& pb, const Knobs&) {
  const double share = double(pb.ranks - 1) / pb.ranks;
  return {.rounds = 2.0 * (pb.ranks - 1), .volume = 2 * share, .reduced = share,
          .messages = (pb.ranks + 1.0) * (pb.ranks - 1)};
}

}  // namespace

extern const Algorithm reduce_direct{
    .collective = Collective::reduce, .name = "direct", .cuts = block_per_rank, .build = build,
    .cost = cost, .bits = Bits::by_rank};

}  // namespace paceline
