// Linear allreduce: rank 0 adds everybody's in rank order, and tells everybody.
//
// Source   elementary: linear reduce, then linear broadcast.
// Needs    nothing: any p >= 1, any n >= 0, operands stay in rank order.
// Cost     (p-1) (2 alpha + 2 n beta + n gamma)
// Scratch  n elements at rank 0, none where the transport adds as it receives.
// When     two or three ranks; a plain reference for the others.
// Order    rank order from left to right: same bits on every rank and in every run.
//
// p = 3; a digit is a contribution, * is final.
//                 rank 0    rank 1    rank 2
//   start         0         1         2
//   round 0       01        1         2
//   round 1       *         1         2
//   round 2       *         *         2
//   round 3       *         *         *
#include "coll/algorithms.hpp"
#include "coll/in_two.hpp"

namespace paceline {
namespace {

int cuts(const Problem&, const Knobs&) { return 1; }

void build(const Problem&, const Knobs&, Builder& b) {
  reduce_and_tell(b, reduce_linear, broadcast_linear);
}

Cost cost(const Problem& pb, const Knobs&) {
  const double others = pb.ranks - 1;
  return {.rounds = 2 * others, .volume = 2 * others, .reduced = others};
}

}  // namespace

extern const Algorithm allreduce_linear{
    .collective = Collective::allreduce, .name = "linear", .cuts = cuts, .build = build,
    .cost = cost};

}  // namespace paceline
