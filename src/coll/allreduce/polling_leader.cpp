// Polling leader allreduce: rank 0 adds what the others show, as they come, and shows the sum.
//
// Source   P. Alizadeh, Y. H. Temucin, A. Sojoodi, A. Afsahi: Efficient process arrival pattern
//          aware collective communication for deep learning. EuroMPI/USA 2022, section 5.1: the
//          leader that polls. doi 10.1145/3555819.3555857
// Needs    ranks of one node, a commutative op. Any p >= 1, any n >= 0.
// Cost     2 signals one after the other; n copied in by each of the others, (p-1) n gamma by
//          rank 0, n copied out by each of the others. Of the sum only the last operand is left
//          to add when the last rank has come, unless that is rank 0.
// Scratch  n
// When     as a baseline: rank 0 may be the one that is late.
// Order    order of arrival: same bits on every rank, and others in the next run.
//
// p = 3; rank 0 has position 0, whenever it comes, the others come in the order 2, 1. A digit is a
// contribution, * is final.
//              rank 0            rank 2            rank 1
//              buffer  stage     buffer  stage     buffer  stage
//   start      A0                A2                A1
//   show       A0                A2      A2        A1      (late)
//   add        A02               A2      A2        A1
//   show       A02               A2      A2        A1      A1
//   add        A*      A*        A2      A2        A1      A1
//   copy out   A*      A*        A*      A2        A*      A1
#include "coll/leader.hpp"
#include "ir/algorithm.hpp"

namespace paceline {
namespace {

void build(const Problem&, const Knobs&, Builder& b) { lead_by_position(b); }

}  // namespace

extern const Algorithm allreduce_polling_leader{
    .collective = Collective::allreduce, .name = "polling_leader", .cuts = one_block,
    .build = build, .cost = cost_of_leader, .access = Access::staging, .claimed = true,
    .root_first = true, .follows_arrival = true};

}  // namespace paceline
