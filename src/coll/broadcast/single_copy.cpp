// Single-copy broadcast: the root writes part of the message into each peer, which reads the rest.
//
// Source   ours (docs/design/0014-shared-buffers.md); single copies by help of the kernel: T. Ma,
//          G. Bosilca, A. Bouteiller, J. Dongarra: Kernel-assisted and topology-aware MPI
//          collective communications on multi-core/many-core platforms. J. Parallel Distrib.
//          Comput. 73(7):1000-1010, 2013.
// Needs    ranks of one node, and a system that copies between their memory. Any p >= 1, any root,
//          any n >= 0.
// Cost     no message but 4 (p-1) signals, in two meetings of the root with each peer; (p-1)/p n
//          copied by every rank at the same time
// Scratch  none
// When     long messages between two ranks, in buffers that need not be shared.
// Order    moves data only.
//
// p = 3, root 0, parts A B C; < is read by its rank, > was written by the root.
//                 rank 0        rank 1        rank 2
//   start         A  B  C
//   copy          A  B  C       A< B> C<      A< B< C>
#include "coll/broadcast/parts.hpp"
#include "ir/algorithm.hpp"

namespace paceline {

extern const Algorithm broadcast_single_copy{
    .collective = Collective::broadcast, .name = "single_copy", .cuts = cuts_of_parts,
    .build = build_parts, .cost = cost_of_parts, .access = Access::single_copy};

}  // namespace paceline
