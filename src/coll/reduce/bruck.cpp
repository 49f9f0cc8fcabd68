// Bruck's reduce: blocks travel to their owners unsummed, many in one message; sums to the root.
//
// Source   J. Bruck, C.-T. Ho, S. Kipnis, E. Upfal, D. Weathersby: Efficient algorithms for
//          all-to-all communications in multiport message-passing systems. IEEE Trans. Parallel
//          Distrib. Syst. 8(11):1143-1156, 1997. doi 10.1109/71.642949: its alltoall, with every
//          owner's sum after it; then the binomial gather.
// Needs    nothing: any p >= 1, any n >= 0, any root, operands stay in rank order.
// Cost     2 ceil(log2 p) alpha + about (log2(p)/2 + 1) n beta + (p-1)/p n gamma, as of the
//          reduce-scatter of the same name, and (p-1)/p n beta (exact when p divides n; beyond 16
//          ranks a part of gamma is hidden)
// Scratch  less than 2 n; n/p more, and at most n/2 on inner ranks, where not the root.
// When     many ranks, medium messages, and operands that stay in order: few rounds.
// Order    rank order from left to right, whatever the root; beyond 16 ranks first in equal groups
//          of at most 16, unless the order is to be canonical: same bits in every run.
//
// p = 3, root 0, blocks A B C; a digit is a contribution, * is final. Received data is in scratch.
//                 rank 0            rank 1            rank 2
//   start         A0   B0   C0      A1   B1   C1      A2   B2   C2
//   round 0       A0 A2   C0        B1 B0   A1        C2 C1   B2
//   round 1       A*                B*                C*
//   round 2       A*   B*                B*                C*
//   round 3       A*   B*   C*           B*                C*
#include "coll/algorithms.hpp"
#include "coll/in_two.hpp"

namespace paceline {
namespace {

void build(const Problem&, const Knobs&, Builder& b) {
  scatter_and_collect(b, reduce_scatter_bruck, gather_binomial);
}

Cost cost(const Problem& pb, const Knobs&) {
  return cost_of_two(pb, reduce_scatter_bruck, gather_binomial);
}

}  // namespace

extern const Algorithm reduce_bruck{
    .collective = Collective::reduce, .name = "bruck", .cuts = block_per_rank, .build = build,
    .cost = cost, .bits = Bits::by_rank};

}  // namespace paceline
