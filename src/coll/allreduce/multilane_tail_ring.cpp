// Multi-lane tail ring allreduce: nodes sum, those that are early sum by a ring, and late ones give
// their part when all of their ranks have entered.
//
// Source   ours (docs/design/0041-late-ranks.md): multilane with tail_ring between the nodes.
// Needs    commutative op, late ranks known to all; where sums are stable the operation is exact. k
//          nodes, of which the smallest has g ranks and the largest m; a node is late that has a
//          late rank. Any n >= 0.
// Cost     across as allreduce/tail_ring of k ranks, each message g times, of n/g, at the port of a
//          node; inside it 2 (m-1) alpha + 2 (m-1)/g n beta
// Scratch  at most 4 slices of n/g, 1 for each late node, and m ceil(n/g).
// When     several ranks on some of several nodes, long messages, few nodes late by more than about
//          half of n beta. blocks: passes.
// Order    rank order inside a node, then as allreduce/tail_ring of the nodes: same bits on every
//          rank, and in every run in which the same nodes are predicted late.
//
// p = 5, nodes 01, 23, 4; rank 2 is late; one part, one pass, slices A B; * is final.
//                 rank 0         rank 1         rank 2         rank 3         rank 4
//   start         A0   B0        A1   B1                       A3   B3        A4   B4
//   sum           A01  B01                                                    A4   B4
//   round 0       A014                                                             B014
//   it enters     A014                          A23  B23                           B014
//   round 1       A*                            A23  B23                           B*
//   round 2       A*   B*                       A*   B*                       A*   B*
//   read          A*   B*        A*   B*        A*   B*        A*   B*        A*   B*
#include "coll/algorithms.hpp"
#include "coll/allreduce/hierarchy.hpp"
#include "coll/rejects.hpp"

namespace paceline {
namespace {

std::optional<Reason> rejects(const Problem& pb) {
  return unless_commutative(pb, "a ring sums in ring order", "multilane_tail_direct");
}

int cuts(const Problem& pb, const Knobs& knobs) {
  return cuts_in_hierarchy(Hierarchy::by_messages(pb), allreduce_tail_ring, knobs);
}

void build(const Problem& pb, const Knobs& knobs, Builder& b) {
  allreduce_by_messages(b, Hierarchy::by_messages(pb), allreduce_tail_ring, knobs);
}

Cost cost(const Problem& pb, const Knobs& knobs) {
  return cost_in_hierarchy(Hierarchy::by_messages(pb), allreduce_tail_ring, knobs);
}

}  // namespace

extern const Algorithm allreduce_multilane_tail_ring{
    .collective = Collective::allreduce, .name = "multilane_tail_ring", .rejects = rejects,
    .cuts = cuts, .build = build, .cost = cost, .takes = kTakesBlocks, .by_nodes = true,
    .expects_late = true, .bits_follow_late = true};

}  // namespace paceline
