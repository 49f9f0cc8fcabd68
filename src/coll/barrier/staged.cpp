// Staged barrier: every rank tells all others that it has come.
//
// Source   elementary: a flag for each rank.
// Needs    ranks of one node. Any p >= 1.
// Cost     one signal from every rank to every other one.
// Scratch  none
// When     on one node.
// Order    no arithmetic.
//
// p = 3, the ranks that are known to have come:
//              rank 0    rank 1    rank 2
//   start      0         1         2
//   meet       0 1 2     0 1 2     0 1 2
#include "coll/shared.hpp"
#include "ir/algorithm.hpp"

namespace paceline {
namespace {

void build(const Problem&, const Knobs&, Builder& b) { meet(b); }

Cost cost(const Problem& pb, const Knobs&) {
  return {.rounds = pb.ranks > 1 ? 1.0 : 0.0};
}

}  // namespace

extern const Algorithm barrier_staged{
    .collective = Collective::barrier, .name = "staged", .build = build, .cost = cost,
    .access = Access::staging};

}  // namespace paceline
