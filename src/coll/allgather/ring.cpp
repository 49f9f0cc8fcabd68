// Ring allgather: every unit travels once round the ring.
//
// Source   R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication
//          operations in MPICH. Int. J. High Perform. Comput. Appl. 19(1):49-66, 2005.
//          doi 10.1177/1094342005051521
// Needs    nothing: any p >= 1, any counts, zero among them.
// Cost     (p-1) alpha + (p-1)/p n beta, n the whole result (exact when the units are equal)
// Scratch  none
// When     long messages. Rounds grow with p.
// Order    moves data only.
//
// p = 3, units A B C.
//                 rank 0            rank 1            rank 2
//   start         A                      B                      C
//   round 0       A         C       A    B                 B    C
//   round 1       A    B    C       A    B    C       A    B    C
#include "ir/algorithm.hpp"
#include "ir/bind.hpp"

namespace paceline {
namespace {

void build(const Problem& pb, const Knobs&, Builder& b) {
  const Order order(pb);   // node by node
  const int p = pb.ranks, at = order.position_of(pb.rank);
  const int left = order.rank_at(at - 1), right = order.rank_at((at + 1) % p);
  const auto unit = [&](int i) { return b.output(order.rank_at(i)); };
  b.copy(b.input(pb.rank), b.output(pb.rank));
  for (int k = 0; k < p - 1; ++k) {
    b.send(right, {unit(at - k)});
    b.recv(left, {unit(at - k - 1)});
  }
}

Cost cost(const Problem& pb, const Knobs&) {
  const double share = double(pb.ranks - 1) / pb.ranks;
  return {.rounds = pb.ranks - 1.0, .volume = share, .in_node_order = true};
}

}  // namespace

extern const Algorithm allgather_ring{
    .collective = Collective::allgather, .name = "ring", .build = build, .cost = cost};

}  // namespace paceline
