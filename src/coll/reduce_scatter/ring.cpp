// Ring reduce-scatter: every block travels once round the ring, and ends where it belongs.
//
// Source   P. Patarasuk, X. Yuan: Bandwidth optimal all-reduce algorithms for clusters of
//          workstations. J. Parallel Distrib. Comput. 69(2):117-124, 2009.
//          doi 10.1016/j.jpdc.2008.09.002
// Needs    commutative op. Any p >= 1, any counts, zero among them.
// Cost     (p-1) alpha + (p-1)/p n (beta + gamma) (exact when the units are equal)
// Scratch  at most 4 units of the longest size: two arrive and two travel on, in turn.
// When     long messages. Rounds grow with p.
// Order    block i is summed in ring order, node by node, from the rank after i on to rank i: same
//          bits in every run for the same nodes.
//
// p = 3, blocks A B C; a digit is a contribution, * is final. Partial sums are in scratch.
//                 rank 0            rank 1            rank 2
//   start         A0   B0   C0      A1   B1   C1      A2   B2   C2
//   round 0            B02               C01          A12
//   round 1       A*                     B*                C*
#include "coll/rejects.hpp"
#include "ir/algorithm.hpp"
#include "ir/bind.hpp"

namespace paceline {
namespace {

std::optional<Reason> rejects(const Problem& pb) {
  return unless_commutative(pb, "a ring sums in ring order", "direct");
}

void build(const Problem& pb, const Knobs&, Builder& b) {
  const Order order(pb);   // node by node
  const int p = pb.ranks, at = order.position_of(pb.rank);
  const int left = order.rank_at(at - 1), right = order.rank_at((at + 1) % p);
  const auto unit = [&](int i) { return b.input(order.rank_at(i)); };
  if (p == 1) {
    b.copy(b.input(0), b.output(0));
    return b.finish(b.output(0));
  }
  const Segment own = unit(at);
  const Segment came[2] = {b.scratch(own), b.scratch(own)};
  const Segment partial[2] = {b.scratch(own), b.scratch(own)};

  Segment travels = unit(at - 1);
  for (int k = 0; k < p - 1; ++k) {
    const Segment mine = unit(at - k - 2), arrived = b.as(came[k % 2], mine);
    const Segment sum = k == p - 2 ? b.output(pb.rank) : b.as(partial[k % 2], mine);
    b.send(right, {travels});
    b.recv(left, {arrived});
    b.reduce({arrived, mine}, sum);
    travels = sum;
  }
  b.finish(b.output(pb.rank));
}

Cost cost(const Problem& pb, const Knobs&) {
  const double share = double(pb.ranks - 1) / pb.ranks;
  return {.rounds = pb.ranks - 1.0, .volume = share, .reduced = share,
          .in_node_order = true};
}

}  // namespace

extern const Algorithm reduce_scatter_ring{
    .collective = Collective::reduce_scatter, .name = "ring", .rejects = rejects, .build = build,
    .cost = cost};

}  // namespace paceline
