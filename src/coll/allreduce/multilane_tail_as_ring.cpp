// Multi-lane tail allreduce with multilane's bits: early nodes collect, then add in ring order.
//
// Source   ours (docs/design/0041-late-ranks.md): multilane with tail_as_ring between the nodes.
// Needs    commutative op, late ranks known to all; k nodes, of which the smallest has g ranks and
//          the largest m. A node with a late rank is late. Any n >= 0.
// Cost     across as allreduce/tail_as_ring of k ranks, each message g times, of n/g, at the port
//          of a node; inside it 2 (m-1) alpha + 2 (m-1)/g n beta
// Scratch  at most (k + m)/g n elements: what has come is kept until all is there.
// When     several ranks on some of several nodes, long messages, few nodes late by more than about
//          half of n beta, and bits that must not depend on which ranks are late, where the usual
//          call is multilane. blocks: passes.
// Order    inside a node as multilane, then round the ring of the nodes: the bits of multilane in
//          as many segments, whichever ranks are predicted late.
//
// p = 5, nodes 01, 23, 4; rank 2 is late; one part, one pass, slices A B; * is final.
//                 rank 0         rank 1         rank 2         rank 3         rank 4
//   start         A0   B0        A1   B1                       A3   B3        A4   B4
//   sum           A01  B01                                                    A4   B4
//   round 0       A01 A4                                                      B01 B4
//   it enters     A01 A4                        A23  B23                      B01 B4
//   round 1       A*                            A23  B23                      B*
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

using Form = AllreduceByNodes<Hierarchy::as_staged, allreduce_tail_as_ring>;

void build(const Problem& pb, const Knobs& knobs, Builder& b) {
  const auto hierarchy = Hierarchy::as_staged(pb);
  const Problem between = between_nodes(hierarchy);
  b.cut_within(allreduce_tail_as_ring.cuts(between, knobs) / between.ranks);
  allreduce_by_messages(b, hierarchy, allreduce_tail_as_ring, knobs);
}

}  // namespace

extern const Algorithm allreduce_multilane_tail_as_ring{
    .collective = Collective::allreduce, .name = "multilane_tail_as_ring", .rejects = rejects,
    .cuts = Form::cuts, .build = build, .cost = Form::cost, .takes = kTakesBlocks,
    .access = Access::nodes, .arrivals = Arrivals::predicted, .bits = Bits::by_ring};

}  // namespace paceline
