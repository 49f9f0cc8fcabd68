// Recursive doubling allgather: in round k all exchange what they know across dimension k.
//
// Source   R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication
//          operations in MPICH. Int. J. High Perform. Comput. Appl. 19(1):49-66, 2005.
//          doi 10.1177/1094342005051521
// Needs    nothing: any p >= 1, any counts, zero among them.
// Cost     q alpha + (p-1)/p n beta, q = log2 p, n the whole result. If p is no power of two:
//          alpha + n/p beta to fold the extra ranks in, floor(log2 p) rounds in which the larger
//          half decides, and alpha + (p-1)/p n beta to tell them (exact when the units are equal).
// Scratch  none
// When     p is a power of two; else circulant.
// Order    moves data only.
//
// p = 4, units A B C D.
//                 rank 0         rank 1         rank 2         rank 3
//   start         A                 B                 C                 D
//   round 0       A  B           A  B                 C  D           C  D
//   round 1       A  B  C  D     A  B  C  D     A  B  C  D     A  B  C  D
#include "ir/algorithm.hpp"
#include "shapes/hypercube.hpp"

namespace paceline {
namespace {

void build(const Problem& pb, const Knobs&, Builder& b) {
  const Hypercube cube{pb.ranks};
  const int p = pb.ranks, r = pb.rank;
  b.copy(b.input(r), b.output(r));
  if (!cube.is_corner(r)) {
    b.send(r + 1, {b.output(r)});
    return b.recv(r + 1, {b.output(0, r), b.output(r + 1, p - r - 1)});
  }
  if (cube.stands_for_two(r)) b.recv(r - 1, {b.output(r - 1)});
  const auto near = [&](int corner, int d) {
    const int first = cube.first_near(corner, d);
    return b.output(first, cube.behind_near(corner, d) - first);
  };
  for (int d = 0; d < cube.dimensions(); ++d) {
    const int partner = cube.partner(r, d);
    b.send(partner, {near(cube.corner_of(r), d)});
    b.recv(partner, {near(cube.corner_of(partner), d)});
  }
  if (cube.stands_for_two(r)) b.send(r - 1, {b.output(0, r - 1), b.output(r, p - r)});
}

Cost cost(const Problem& pb, const Knobs&) {
  const Hypercube cube{pb.ranks};
  const double p = pb.ranks, fold = cube.extra() > 0 ? 1 : 0;
  Cost c{.rounds = cube.dimensions() + 2 * fold, .volume = fold, .reduced = 0};   // 1/p + (p-1)/p
  for (int d = 0; d < cube.dimensions(); ++d) c.volume += cube.behind_near(0, d) / p;
  return c;
}

}  // namespace

extern const Algorithm allgather_recursive_doubling{
    .collective = Collective::allgather, .name = "recursive_doubling", .build = build,
    .cost = cost};

}  // namespace paceline
