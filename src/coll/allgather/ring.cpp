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
#include "coll/registry.hpp"

namespace paceline {
namespace {

int cuts(const Problem&, const Knobs&) { return 1; }

void build(const Problem& pb, const Knobs&, Builder& b) {
  const int p = pb.ranks, r = pb.rank;
  const int left = (r + p - 1) % p, right = (r + 1) % p;
  const auto unit = [&](int i) { return b.output((i + p) % p); };
  b.copy(b.input(r), b.output(r));
  for (int k = 0; k < p - 1; ++k) {
    b.send(right, {unit(r - k)});
    b.recv(left, {unit(r - k - 1)});
  }
}

Cost cost(const Problem& pb, const Knobs&) {
  const double share = double(pb.ranks - 1) / pb.ranks;
  return {.rounds = pb.ranks - 1.0, .volume = share, .reduced = 0};
}

}  // namespace

const Algorithm allgather_ring{Collective::allgather, "ring", serves_all, cuts, build, cost};

}  // namespace paceline
