// Multi-lane allreduce in rank order: as multilane, but the leaders of a part exchange it directly.
//
// Source   ours (docs/design/0041-late-ranks.md): multilane with direct between the nodes.
// Needs    k nodes, of which the smallest has g ranks and the largest m. If the op is not
//          commutative the ranks of a node are neighbours. Any n >= 0; blocks may be empty.
// Cost     across 2 (k-1) g alpha + 2 (k-1)/k n beta at the port of a node; inside it as multilane
// Scratch  staging buffer: n + n/g; and at most n/g and a block of it. By messages: m ceil(n/g)
//          more.
// When     long messages, several ranks on some of several nodes: operands in order, or sums whose
//          bits must not depend on which ranks are late, when none is.
// Order    rank order inside a node, then the nodes in order, beyond 16 in groups: same bits on
//          every rank and in every run for the same nodes.
//
// p = 5, nodes 012 and 34, parts A B of two blocks; a digit is a contribution, * is final.
//             rank 0          rank 1          rank 2   rank 3          rank 4
//   start     A0      B0      A1      B1      A2  B2   A3      B3      A4      B4
//   sum       A012                    B012             A34                     B34
//   across    A*                      B*               A*                      B*
//   read      A*      B*      A*      B*      A*  B*   A*      B*      A*      B*
#include "coll/algorithms.hpp"
#include "coll/allreduce/hierarchy.hpp"

namespace paceline {
namespace {

using Form = AllreduceByNodes<Hierarchy::in_rank_order, allreduce_direct>;

}  // namespace

extern const Algorithm allreduce_multilane_direct{
    .collective = Collective::allreduce, .name = "multilane_direct",
    .rejects = unless_nodes_in_order, .cuts = Form::cuts, .build = Form::build, .cost = Form::cost,
    .access = Access::nodes, .bits = Bits::by_rank};

}  // namespace paceline
