// Bruck's allreduce: blocks travel to their owners unsummed, many in one message; then the sums do.
//
// Source   J. Bruck, C.-T. Ho, S. Kipnis, E. Upfal, D. Weathersby: Efficient algorithms for
//          all-to-all communications in multiport message-passing systems. IEEE Trans. Parallel
//          Distrib. Syst. 8(11):1143-1156, 1997. doi 10.1109/71.642949: its alltoall, with every
//          owner's sum after it; then the circulant allgather.
// Needs    nothing: any p >= 1, any n >= 0, operands stay in rank order.
// Cost     2 ceil(log2 p) alpha + about (log2(p)/2 + 1) n beta + (p-1)/p n gamma, as of the
//          reduce-scatter of the same name, and (p-1)/p n beta (exact when p divides n; beyond 16
//          ranks a part of gamma is hidden)
// Scratch  less than 2 n
// When     many ranks, medium messages, and operands that stay in order: few rounds.
// Order    rank order from left to right; beyond 16 ranks first in equal groups of at most 16,
//          unless the order is to be canonical: same bits on every rank and in every run.
//
// p = 3, blocks A B C; a digit is a contribution, * is final. Received data is in scratch.
//                 rank 0            rank 1            rank 2
//   start         A0   B0   C0      A1   B1   C1      A2   B2   C2
//   round 0       A0 A2   C0        B1 B0   A1        C2 C1   B2
//   round 1       A*                B*                C*
//   round 2       A*   B*                B*   C*      A*        C*
//   round 3       A*   B*   C*      A*   B*   C*      A*   B*   C*
#include "coll/algorithms.hpp"
#include "coll/in_two.hpp"

namespace paceline {
namespace {

void build(const Problem&, const Knobs&, Builder& b) {
  scatter_and_spread(b, reduce_scatter_bruck, allgather_circulant);
}

Cost cost(const Problem& pb, const Knobs&) {
  return cost_of_two(pb, reduce_scatter_bruck, allgather_circulant);
}

}  // namespace

extern const Algorithm allreduce_bruck{
    .collective = Collective::allreduce, .name = "bruck", .cuts = block_per_rank, .build = build,
    .cost = cost, .bits = Bits::by_rank};

}  // namespace paceline
