// Hierarchical chain reduce: a node sums at its leader, and sums go from node to node.
//
// Source   T. Kielmann, R. F. H. Hofman, H. E. Bal, A. Plaat, R. A. F. Bhoedjang: MagPIe: MPI's
//          collective communication operations for clustered wide area systems. PPoPP 1999,
//          131-140. doi 10.1145/301104.301116; here with load/store inside the node.
// Needs    nodes, the largest of m ranks; operands that must stay in rank order need the root 0 and
//          ranks of a node that are neighbours. Any n >= 0.
// Cost     across as reduce/chain of the nodes; inside a node two signals, (m-1) n read from
//          others and (m-1) n gamma, or by messages ceil(log2 m) (alpha + n beta + n gamma)
// Scratch  staging buffer: n; n more on leaders, and what reduce/chain takes. By
//          messages: at most 7 n.
// When     long messages in many segments, several ranks on some of several nodes.
// Order    rank order inside a node, then as reduce/chain: same bits in every run for the same
//          nodes.
//
// p = 5, nodes 012 and 34, root 1; a digit is a contribution, * is final.
//             rank 0      rank 1      rank 2      rank 3      rank 4
//   start     0           1           2           3           4
//   sum                   012                     34
//   across                *
#include "coll/algorithms.hpp"
#include "coll/reduce/hierarchy.hpp"

namespace paceline {
namespace {

using Form = ReduceByNodes<reduce_chain>;

}  // namespace

extern const Algorithm reduce_hierarchical_chain{
    .collective = Collective::reduce, .name = "hierarchical_chain", .rejects = rejects_in_hierarchy,
    .build = Form::build, .cost = Form::cost, .access = Access::nodes};

}  // namespace paceline
