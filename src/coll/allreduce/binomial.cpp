// Binomial allreduce (BIN): reduce to rank 0 along a binomial tree, then broadcast along it.
//
// Source   R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication
//          operations in MPICH. Int. J. High Perform. Comput. Appl. 19(1):49-66, 2005.
//          doi 10.1177/1094342005051521
// Needs    nothing: any p >= 1, any n >= 0, operands stay in rank order.
// Cost     2 ceil(log2 p) (alpha + n beta) + ceil(log2 p) n gamma
// Scratch  at most 3 n elements on inner ranks, 2 n on rank 0.
// When     non-commutative operations, or a slow many-rank machine and short messages; else
//          recursive doubling.
// Order    rank order in aligned blocks of powers of two: same bits on every rank and in every run.
//
// p = 4; a digit is a contribution, * is final.
//                 rank 0    rank 1    rank 2    rank 3
//   start         0         1         2         3
//   round 0       01                  23
//   round 1       *
//   round 2       *                   *
//   round 3       *         *         *         *
#include "coll/algorithms.hpp"
#include "coll/in_two.hpp"
#include "shapes/binomial.hpp"

namespace paceline {
namespace {

void build(const Problem&, const Knobs&, Builder& b) {
  reduce_and_tell(b, reduce_binomial, broadcast_binomial);
}

Cost cost(const Problem& pb, const Knobs&) {
  const double q = ceil_log2(pb.ranks);
  return {.rounds = 2 * q, .volume = 2 * q, .reduced = q,
          .messages = 2 * (pb.ranks - 1.0)};
}

}  // namespace

extern const Algorithm allreduce_binomial{
    .collective = Collective::allreduce, .name = "binomial", .build = build, .cost = cost};

}  // namespace paceline
