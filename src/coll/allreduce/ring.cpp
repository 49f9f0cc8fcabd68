// Ring allreduce: every block travels once round the ring to be summed, once more to be known.
//
// Source   P. Patarasuk, X. Yuan: Bandwidth optimal all-reduce algorithms for clusters of
//          workstations. J. Parallel Distrib. Comput. 69(2):117-124, 2009.
//          doi 10.1016/j.jpdc.2008.09.002
// Needs    commutative op. Any p >= 1, any n >= 0; blocks may be empty.
// Cost     2(p-1) alpha + 2 (p-1)/p n beta + (p-1)/p n gamma          (exact when p divides n)
// Scratch  at most 4 ceil(n/p) elements; 2 where the transport adds as it receives.
// When     long messages. Rounds grow with p: trees win when n is short.
// Order    block i is summed in ring order from rank i + 1 to rank i: same bits on every rank and
//          in every run for fixed p and n; other bits for other p.
//
// p = 3, blocks A B C; a digit is a contribution, * is final. Partial sums are in scratch.
//                 rank 0            rank 1            rank 2
//   start         A0   B0   C0      A1   B1   C1      A2   B2   C2
//   round 0            B02               C01          A12
//   round 1       A*                     B*                C*
//   round 2       A*        C*      A*   B*                B*   C*
//   round 3       A*   B*   C*      A*   B*   C*      A*   B*   C*
#include "coll/algorithms.hpp"
#include "coll/in_two.hpp"
#include "coll/rejects.hpp"

namespace paceline {
namespace {

std::optional<Reason> rejects(const Problem& pb) {
  return unless_commutative(pb, "a ring sums in ring order", "binomial");
}

void build(const Problem&, const Knobs&, Builder& b) {
  scatter_and_spread(b, reduce_scatter_ring, allgather_ring);
}

Cost cost(const Problem& pb, const Knobs&) {
  const double share = double(pb.ranks - 1) / pb.ranks;
  return {.rounds = 2.0 * (pb.ranks - 1), .volume = 2 * share, .reduced = share};
}

}  // namespace

extern const Algorithm allreduce_ring{
    .collective = Collective::allreduce, .name = "ring", .rejects = rejects, .cuts = block_per_rank,
    .build = build, .cost = cost, .bits = Bits::by_ring};

}  // namespace paceline
