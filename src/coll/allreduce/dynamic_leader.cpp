// Dynamic leader allreduce: the first rank to come adds what the others show, as they come.
//
// Source   P. Alizadeh, Y. H. Temucin, A. Sojoodi, A. Afsahi: Efficient process arrival pattern
//          aware collective communication for deep learning. EuroMPI/USA 2022, algorithm 1; here
//          without a lock, and with flags that need no reset. doi 10.1145/3555819.3555857
// Needs    ranks of one node, a commutative op. Any p >= 1, any n >= 0.
// Cost     2 signals one after the other; n copied in by each of the others, (p-1) n gamma by the
//          leader, n copied out by each of the others. When the last rank has come, one copy in,
//          one sum and the copies out are left.
// Scratch  n
// When     short and medium messages on one node, where ranks come at different times.
// Order    order of arrival: same bits on every rank, and others in the next run.
//
// p = 3; they come in the order 1, 2, 0. A digit is a contribution, * is final.
//              rank 1            rank 2            rank 0
//              buffer  stage     buffer  stage     buffer  stage
//   start      A1                A2                A0
//   show       A1                A2      A2        A0      (late)
//   add        A12               A2      A2        A0
//   show       A12               A2      A2        A0      A0
//   add        A*      A*        A2      A2        A0      A0
//   copy out   A*      A*        A*      A2        A*      A0
#include "coll/leader.hpp"
#include "ir/algorithm.hpp"

namespace paceline {
namespace {

void build(const Problem&, const Knobs&, Builder& b) { lead_by_position(b); }

}  // namespace

extern const Algorithm allreduce_dynamic_leader{
    .collective = Collective::allreduce, .name = "dynamic_leader",
    .build = build, .cost = cost_of_leader, .access = Access::staging,
    .arrivals = Arrivals::claimed};

}  // namespace paceline
