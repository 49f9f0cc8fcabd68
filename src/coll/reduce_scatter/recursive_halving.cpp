// Recursive halving reduce-scatter: in every round each half of the ranks hands the other its half.
//
// Source   R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication
//          operations in MPICH. Int. J. High Perform. Comput. Appl. 19(1):49-66, 2005.
//          doi 10.1177/1094342005051521
// Needs    commutative op. Any p >= 1, any counts, zero among them.
// Cost     q alpha + (p-1)/p n (beta + gamma), q = log2 p. If p is no power of two: alpha +
//          n (beta + gamma) to fold the extra ranks in, floor(log2 p) rounds in which the larger
//          half decides, and alpha + n/p beta to hand them their own (exact when the units are
//          equal).
// Scratch  at most 5/4 n; 3 n on ranks that stand for two.
// When     p is a power of two and far messages are to come first; else circulant.
// Order    a unit is summed over the dimensions, the highest first: same bits in every run.
//
// p = 4, blocks A B C D; a digit is a contribution, * is final. Partial sums are in scratch.
//                 rank 0         rank 1         rank 2         rank 3
//   start         A0 B0 C0 D0    A1 B1 C1 D1    A2 B2 C2 D2    A3 B3 C3 D3
//   round 0       A02 B02        A13 B13              C02 D02        C13 D13
//   round 1       A*                B*                C*                D*
#include "coll/rejects.hpp"
#include "ir/algorithm.hpp"
#include "shapes/hypercube.hpp"

namespace paceline {
namespace {

std::optional<Reason> rejects(const Problem& pb) {
  return unless_commutative(pb, "far ranks are combined first", "direct");
}

void build(const Problem& pb, const Knobs&, Builder& b) {
  const Hypercube cube{pb.ranks};
  const int r = pb.rank, q = cube.dimensions(), corner = cube.corner_of(r);
  const bool two = cube.stands_for_two(r);
  if (!cube.is_corner(r)) {
    b.send(r + 1, {b.input()});
    b.recv(r + 1, {b.output(r)});
    return b.finish(b.output(r));
  }
  const auto part = [](const Segment& all, int first, int behind) {
    return Builder::part(all, first, behind - first);
  };
  Segment mine = b.input();   // so far; of it, what belongs to the near half in this round
  if (two) {
    mine = b.scratch(b.input());
    const Segment came = b.scratch(b.input());
    b.recv(r - 1, {came});
    b.reduce({came, b.input()}, mine);
  }
  Segment spare[2];
  for (int d = q - 1; d >= 0; --d) {
    const int partner = cube.partner(r, d), far = cube.corner_of(partner);
    const Segment own = part(mine, cube.first_near(corner, d), cube.behind_near(corner, d));
    if (d >= q - 2) spare[d % 2] = b.scratch(own);
    const Segment came = part(spare[d % 2], own.first, own.first + own.blocks);
    b.send(partner, {part(mine, cube.first_near(far, d), cube.behind_near(far, d))});
    b.recv(partner, {came});
    Segment sum = own;
    if (d == 0 && !two) sum = b.output(r);
    else if (own.space != Space::scratch) sum = b.scratch(own);
    b.reduce({own, came}, sum);
    mine = sum;
  }
  b.copy(Builder::part(mine, mine.first + (two ? 1 : 0), 1), b.output(r));
  if (two) b.send(r - 1, {Builder::part(mine, mine.first, 1)});
  b.finish(b.output(r));
}

Cost cost(const Problem& pb, const Knobs&) {
  const Hypercube cube{pb.ranks};
  const double fold = cube.extra() > 0 ? 1 : 0;
  const double corners = pb.ranks - cube.extra();
  Cost c{.rounds = cube.dimensions() + 2 * fold, .volume = fold + fold / pb.ranks, .reduced = fold,
         .messages = cube.dimensions() * corners + 2 * cube.extra()};
  for (int d = 0; d < cube.dimensions(); ++d) {   // as rank 0's corner and those near it see it
    const double larger = double(cube.behind_near(0, d)) / pb.ranks;
    c.volume += larger;
    c.reduced += larger;
  }
  return c;
}

}  // namespace

extern const Algorithm reduce_scatter_recursive_halving{
    .collective = Collective::reduce_scatter, .name = "recursive_halving", .rejects = rejects,
    .build = build, .cost = cost};

}  // namespace paceline
