// Hierarchical broadcast: leaders of nodes pass the message on, and the others of a node read it.
//
// Source   T. Kielmann, R. F. H. Hofman, H. E. Bal, A. Plaat, R. A. F. Bhoedjang: MagPIe: MPI's
//          collective communication operations for clustered wide area systems. PPoPP 1999,
//          131-140. doi 10.1145/301104.301116; here with load/store inside the node.
// Needs    nodes, the largest of m ranks. Any n >= 0, any root.
// Cost     across as broadcast/binomial of the nodes; inside a node two signals and n read, or by
//          messages ceil(log2 m) (alpha + n beta)
// Scratch  staging buffer: n. By messages: none.
// When     short messages, several ranks on some of several nodes.
// Order    moves data only.
//
// p = 5, nodes 012 and 34, root 1.
//             rank 0      rank 1      rank 2      rank 3      rank 4
//   start                 A
//   across                A                       A
//   read      A           A           A           A           A
#include "coll/algorithms.hpp"
#include "coll/broadcast/hierarchy.hpp"

namespace paceline {
namespace {

using Form = BroadcastByNodes<broadcast_binomial>;

}  // namespace

extern const Algorithm broadcast_hierarchical{
    .collective = Collective::broadcast, .name = "hierarchical", .build = Form::build,
    .cost = Form::cost, .access = Access::nodes};

}  // namespace paceline
