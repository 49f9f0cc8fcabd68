// Multi-lane allreduce: a node's ranks sum a part each, there and across nodes, and read the rest.
//
// Source   J. L. Träff, S. Hunold: Decomposing collectives for exploiting multi-lane communication.
//          arXiv 1910.13373; here with load/store inside the node.
// Needs    commutative op; k nodes, of which the smallest has g ranks and the largest m, any of
//          each in any order. Any n >= 0; blocks may be empty.
// Cost     across 2 (k-1) g alpha + 2 (k-1)/k n beta at the port of a node; inside it two meetings,
//          ((m-1)/g + (g-1)/g) n read from others where m = g, (m-1)/g n + n where m > g; by
//          messages 2 (m-1) alpha + 2 (m-1)/g n beta
// Scratch  staging buffer: n + n/g; and at most 4 ceil(n/g) elements. By
//          messages: m ceil(n/g) more.
// When     long messages, several ranks on some of several nodes.
// Order    rank order inside a node, then round the ring of the nodes: same bits on every rank and
//          in every run for the same nodes.
//
// p = 5, nodes 012 and 34, parts A B; a digit is a contribution, * is final.
//             rank 0      rank 1      rank 2      rank 3      rank 4
//   start     A0   B0     A1   B1     A2   B2     A3   B3     A4   B4
//   sum       A012             B012               A34              B34
//   across    A*               B*                 A*               B*
//   read      A*   B*     A*   B*     A*   B*     A*   B*     A*   B*
#include "coll/algorithms.hpp"
#include "coll/allreduce/hierarchy.hpp"
#include "coll/rejects.hpp"

namespace paceline {
namespace {

std::optional<Reason> rejects(const Problem& pb) {
  return unless_commutative(pb, "a ring sums in ring order", "hierarchical");
}

using Form = AllreduceByNodes<Hierarchy::by_parts, allreduce_ring>;

}  // namespace

extern const Algorithm allreduce_multilane{
    .collective = Collective::allreduce, .name = "multilane", .rejects = rejects,
    .cuts = Form::cuts, .build = Form::build, .cost = Form::cost, .access = Access::nodes,
    .bits = Bits::by_ring};

}  // namespace paceline
