// Rabenseifner's allreduce: recursive halving scatters the sums, recursive doubling gathers them.
//
// Source   R. Rabenseifner: Optimization of collective reduction operations. ICCS 2004, LNCS 3036,
//          1-9. doi 10.1007/978-3-540-24685-5_1
// Needs    commutative op. Any p >= 1, any n >= 0; blocks may be empty.
// Cost     2 q alpha + 2 (p'-1)/p' n beta + (p'-1)/p' n gamma, q = floor(log2 p), p' = 2^q; where p
//          is no power of two, alpha + n (beta + gamma) more to fold the extra ranks in and alpha +
//          n beta to tell them (exact when p' divides n).
// Scratch  at most 5/4 n elements.
// When     medium and long messages where p is a power of two; else circulant, which needs no fold.
// Order    a block is summed over the dimensions, the highest first: same bits on every rank and in
//          every run.
//
// p = 3, blocks A B; a digit is a contribution, * is final. Rank 0 is extra, rank 1 stands for it.
//                 rank 0       rank 1       rank 2
//   start         A0  B0       A1  B1       A2  B2
//   fold          A0  B0       A01 B01      A2  B2
//   round 0       A0  B0       A*               B*
//   round 1       A0  B0       A*  B*       A*  B*
//   tell          A*  B*       A*  B*       A*  B*
#include "coll/algorithms.hpp"
#include "coll/rejects.hpp"
#include "ir/compose.hpp"
#include "shapes/hypercube.hpp"

namespace paceline {
namespace {

int cuts(const Problem& pb, const Knobs&) { return 1 << Hypercube{pb.ranks}.dimensions(); }

std::optional<Reason> rejects(const Problem& pb) {
  return unless_commutative(pb, "far ranks are combined first", "recursive_doubling");
}

void build(const Problem& pb, const Knobs&, Builder& b) {
  const Hypercube cube{pb.ranks};
  const int r = pb.rank;
  Segment mine = b.input();
  if (!cube.is_corner(r)) {
    b.send(r + 1, {mine});
    b.whole();
    return b.recv(r + 1, {b.output()});
  }
  if (cube.stands_for_two(r)) {
    const Segment came = b.scratch(mine);
    b.recv(r - 1, {came});
    b.reduce({came, mine}, b.output());
    mine = b.output();
  }
  std::vector<int> corners;
  for (int corner = 0; corner < 1 << cube.dimensions(); ++corner)
    corners.push_back(cube.rank_of(corner));
  const Region output = region_of(b.output());
  compose(b, r,
          {{.algorithm = &reduce_scatter_recursive_halving, .members = corners,
            .input = region_of(mine), .output = output, .completes = true},
           {.algorithm = &allgather_recursive_doubling, .members = corners,
            .input = output, .output = output, .whole = true}});
  if (cube.stands_for_two(r)) b.send(r - 1, {b.output()});
}

Cost cost(const Problem& pb, const Knobs&) {
  const Hypercube cube{pb.ranks};
  const double fold = cube.extra() > 0 ? 1 : 0, corners = 1 << cube.dimensions();
  const double share = (corners - 1) / corners;
  return {.rounds = 2 * cube.dimensions() + 2 * fold, .volume = 2 * share + 2 * fold,
          .reduced = share + fold,
          .messages = 2 * cube.dimensions() * corners + 2 * cube.extra()};
}

}  // namespace

extern const Algorithm allreduce_rabenseifner{
    .collective = Collective::allreduce, .name = "rabenseifner", .rejects = rejects, .cuts = cuts,
    .build = build, .cost = cost};

}  // namespace paceline
