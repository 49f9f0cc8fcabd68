// Circulant allreduce: reduce-scatter and allgather in ceil(log2 p) rounds each, for any p.
//
// Source   J. L. Traeff: Optimal, non-pipelined reduce-scatter and allreduce algorithms.
//          arXiv 2410.14234, 2024
// Needs    commutative op. Any p >= 1, any n >= 0; blocks may be empty.
// Cost     2 ceil(log2 p) alpha + 2 (p-1)/p n beta + (p-1)/p n gamma (exact when p divides n and is
//          a power of two; otherwise a part of gamma is hidden). With radix k: k - 1 messages in
//          each of 2 ceil(log_k p) rounds.
// Scratch  at most 5/4 n elements.
// When     the default from medium lengths on: least traffic in few rounds, for any p.
// Order    as in reduce_scatter/circulant: same bits on every rank and in every run for fixed p and
//          n; other bits for other p.
//
// p = 3, blocks A B C; a digit is a contribution, * is final. Partial sums are in scratch.
//                 rank 0            rank 1            rank 2
//   start         A0   B0   C0      A1   B1   C1      A2   B2   C2
//   round 0       A01                    B12                    C02
//   round 1       A*                     B*                     C*
//   round 2       A*   B*                B*   C*      A*        C*
//   round 3       A*   B*   C*      A*   B*   C*      A*   B*   C*
#include "coll/algorithms.hpp"
#include "coll/in_two.hpp"
#include "coll/rejects.hpp"

namespace paceline {
namespace {

std::optional<Reason> rejects(const Problem& pb) {
  return unless_commutative(pb, "every block is summed from another rank on", "direct");
}

void build(const Problem&, const Knobs& knobs, Builder& b) {
  scatter_and_spread(b, reduce_scatter_circulant, allgather_circulant, knobs);
}

Cost cost(const Problem& pb, const Knobs& knobs) {
  return cost_of_two(pb, reduce_scatter_circulant, allgather_circulant, knobs);
}

}  // namespace

extern const Algorithm allreduce_circulant{
    .collective = Collective::allreduce, .name = "circulant", .rejects = rejects,
    .cuts = block_per_rank, .build = build, .cost = cost, .takes = kTakesRadix};

}  // namespace paceline
