// Recursive doubling allreduce (RDB): in round k all exchange whole vectors across dimension k.
//
// Source   R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication
//          operations in MPICH. Int. J. High Perform. Comput. Appl. 19(1):49-66, 2005.
//          doi 10.1177/1094342005051521
// Needs    nothing: any p >= 1, any n >= 0, operands stay in rank order.
// Cost     q (alpha + n beta + n gamma), q = floor(log2 p); where p is no power of two, one more of
//          each to fold the extra ranks in, and alpha + n beta to tell them.
// Scratch  at most 3 n elements.
// When     short messages: the fewest rounds, and optimal after the last arrival.
// Order    rank order in aligned blocks: same bits on every rank and in every run. The sums of
//          round k are formed beside the ones that are still being sent, in the output and in
//          scratch in turn.
//
// p = 3; a digit is a contribution, * is final. Rank 0 is extra, rank 1 stands for it.
//                 rank 0    rank 1    rank 2
//   start         0         1         2
//   fold          0         01        2
//   round 0       0         *         *
//   tell          *         *         *
#include "ir/algorithm.hpp"
#include "shapes/hypercube.hpp"

namespace paceline {
namespace {

void build(const Problem& pb, const Knobs&, Builder& b) {
  const Hypercube cube{pb.ranks};
  const int r = pb.rank, q = cube.dimensions();
  const Segment in = b.input(), out = b.output();
  if (q == 0) {
    b.copy(in, out);
    return b.finish(out);
  }
  if (!cube.is_corner(r)) {
    b.send(r + 1, {in});
    return b.recv(r + 1, {out});
  }
  const Segment came[2] = {b.scratch(out), b.scratch(out)}, beside[2] = {out, b.scratch(out)};
  Segment mine = in;
  if (cube.stands_for_two(r)) {
    b.recv(r - 1, {came[0]});
    b.reduce({came[0], mine}, beside[q % 2]);
    mine = beside[q % 2];
  }
  for (int k = 0; k < q; ++k) {
    const int partner = cube.partner(r, k);
    const Segment theirs = came[(k + 1) % 2], sum = beside[(q - 1 - k) % 2];
    b.send(partner, {mine});
    b.recv(partner, {theirs});
    if (partner < r) b.reduce({theirs, mine}, sum);
    else b.reduce({mine, theirs}, sum);
    mine = sum;
  }
  b.finish(out);
  if (cube.stands_for_two(r)) b.send(r - 1, {out});
}

Cost cost(const Problem& pb, const Knobs&) {
  const Hypercube cube{pb.ranks};
  const double q = cube.dimensions(), fold = cube.extra() > 0 ? 1 : 0;
  return {.rounds = q + 2 * fold, .volume = q + 2 * fold, .reduced = q + fold,
          .messages = q * (pb.ranks - cube.extra()) + 2 * cube.extra()};
}

}  // namespace

extern const Algorithm allreduce_recursive_doubling{
    .collective = Collective::allreduce, .name = "recursive_doubling", .build = build,
    .cost = cost};

}  // namespace paceline
