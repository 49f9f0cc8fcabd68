// Hierarchical allreduce: a node sums at its leader, leaders exchange sums, and all read those.
//
// Source   T. Kielmann, R. F. H. Hofman, H. E. Bal, A. Plaat, R. A. F. Bhoedjang: MagPIe: MPI's
//          collective communication operations for clustered wide area systems. PPoPP 1999,
//          131-140. doi 10.1145/301104.301116; here with load/store inside the node.
// Needs    k nodes, of which the largest has m ranks; operands that must stay in rank order need
//          ranks of a node that are neighbours. Any n >= 0.
// Cost     across as allreduce/recursive_doubling of k ranks; inside a node two meetings and m n
//          read from others, or by messages 2 ceil(log2 m) (alpha + n beta)
// Scratch  staging buffer: 2 n; 3 n more on leaders. By messages: at most 3 n on ranks that add up
//          inside a node, 3 n more on leaders.
// When     short messages, several ranks on some of several nodes.
// Order    rank order inside a node, then the nodes in the order of their first ranks: same bits on
//          every rank and in every run for the same nodes.
//
// p = 5, nodes 012 and 34; a digit is a contribution, * is final.
//             rank 0      rank 1      rank 2      rank 3      rank 4
//   start     0           1           2           3           4
//   sum       012         1           2           34          4
//   across    *           1           2           *           4
//   read      *           *           *           *           *
#include "coll/algorithms.hpp"
#include "coll/allreduce/hierarchy.hpp"

namespace paceline {
namespace {

using Form = AllreduceByNodes<Hierarchy::by_one_leader, allreduce_recursive_doubling>;

}  // namespace

extern const Algorithm allreduce_hierarchical{
    .collective = Collective::allreduce, .name = "hierarchical", .rejects = unless_nodes_in_order,
    .cuts = Form::cuts, .build = Form::build, .cost = Form::cost, .access = Access::nodes};

}  // namespace paceline
