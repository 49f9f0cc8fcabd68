// Arrival leader allreduce: the first to come adds what is shown, the last one completes the sum.
//
// Source   ours (docs/design/0044-arrival-in-the-node.md): the dynamic leader
//          (dynamic_leader.cpp) hands its sum over to the last rank, which has its own vector at
//          hand and need not show it.
// Needs    ranks of one node, a commutative op. Any p >= 1, any n >= 0.
// Cost     3 signals one after the other; n copied in by each rank between the first and the
//          last, (p-1) n gamma by those two, n copied out by all but the last. When the last rank
//          has come, one sum and the copies out are left.
// Scratch  n
// When     short and medium messages on one node, where ranks come at different times.
// Order    order of arrival: same bits on every rank, and others in the next run.
//
// p = 3; they come in the order 1, 2, 0. A digit is a contribution, * is final.
//              rank 1            rank 2            rank 0
//              buffer  stage     buffer  stage     buffer  stage
//   start      A1                A2                A0
//   show       A1                A2      A2        A0      (late)
//   add        A1      A12       A2      A2        A0
//   complete   A1      A12       A2      A2        A*      A*
//   copy out   A*      A12       A*      A2        A*      A*
#include "coll/leader.hpp"
#include "ir/algorithm.hpp"

namespace paceline {
namespace {

void build(const Problem& pb, const Knobs&, Builder& b) {
  const int last = pb.ranks - 1;
  const Segment slot = b.scratch(b.output());
  if (pb.rank == last) {
    if (last > 0) b.wait(0);
    if (last > 0) b.reduce({b.of_peer(0, slot), b.input()}, b.output());
    else b.copy(b.input(), b.output());
    return show_sum(b, slot);
  }
  if (pb.rank > 0) {
    show_input(b, 0, slot);
    return take_sum(b, last, slot);
  }
  if (last == 1) b.copy(b.input(), slot);
  for (int k = 1; k < last; ++k) {
    b.wait(k);
    b.reduce({k == 1 ? b.input() : slot, b.of_peer(k, slot)}, slot);
  }
  b.signal(last);
  take_sum(b, last, slot);
}

Cost cost(const Problem& pb, const Knobs&) {
  if (pb.ranks == 1) return {};
  return {.rounds = 2.0 + (pb.ranks > 2), .reduced = pb.ranks - 1.0, .copied = 3};
}

}  // namespace

extern const Algorithm allreduce_arrival_leader{
    .collective = Collective::allreduce, .name = "arrival_leader",
    .build = build, .cost = cost, .access = Access::staging, .arrivals = Arrivals::claimed};

}  // namespace paceline
