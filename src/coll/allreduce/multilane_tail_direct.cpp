// Multi-lane tail direct allreduce: early nodes collect, and add all once the late ones have given.
//
// Source   ours (docs/design/0041-late-ranks.md): multilane with tail_direct between the nodes.
// Needs    late ranks known to all; k nodes, of which the smallest has g ranks and the largest m. A
//          node with a late rank is late. If the op is not commutative the ranks of a node are
//          neighbours. Any n >= 0.
// Cost     across as allreduce/tail_direct of k ranks, each message g times, of n/g, at the port of
//          a node; inside it 2 (m-1) alpha + 2 (m-1)/g n beta
// Scratch  at most (k + m)/g n elements: what has come is kept until all is there.
// When     several ranks on some of several nodes, long messages, few nodes late by more than about
//          half of n beta, and bits that must not depend on which ranks are late. blocks: passes.
// Order    rank order inside a node, then the nodes in order, beyond 16 in groups: the bits of
//          multilane_direct, whichever ranks are predicted late.
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

namespace paceline {
namespace {

using Form = AllreduceByNodes<Hierarchy::by_messages, allreduce_tail_direct>;

}  // namespace

extern const Algorithm allreduce_multilane_tail_direct{
    .collective = Collective::allreduce, .name = "multilane_tail_direct",
    .rejects = unless_nodes_in_order, .cuts = Form::cuts, .build = Form::build, .cost = Form::cost,
    .takes = kTakesBlocks, .access = Access::nodes, .arrivals = Arrivals::predicted,
    .bits = Bits::by_rank};

}  // namespace paceline
