// Attached alltoall: every rank has the system fetch its units where they lie at the others.
//
// Source   ours (docs/design/0023-attached.md); single copies by help of the kernel: T. Ma,
//          G. Bosilca, A. Bouteiller, J. Dongarra: Kernel-assisted and topology-aware MPI
//          collective communications on multi-core/many-core platforms. J. Parallel Distrib.
//          Comput. 73(7):1000-1010, 2013.
// Needs    ranks of one node, and a system that copies between their memory. Any p >= 1, equal
//          units, not in place.
// Cost     no message but 4 (p-1) signals a rank, in two meetings; p-1 units copied by the system
// Scratch  none
// When     long messages between two ranks, in buffers that need not be shared.
// Order    moves data only.
//
// p = 2, units AB: from rank A to rank B.
//                 rank 0         rank 1
//   start         00  01         10  11
//   meet
//   fetch         00  10         01  11
//   meet
#include "coll/registry.hpp"

namespace paceline {
namespace {

// What it does is what the one on shared buffers does; who copies differs.
int cuts(const Problem& pb, const Knobs& knobs) { return alltoall_shared.cuts(pb, knobs); }

std::optional<Reason> rejects(const Problem& pb) { return alltoall_shared.rejects(pb); }

void build(const Problem& pb, const Knobs& knobs, Builder& b) {
  alltoall_shared.build(pb, knobs, b);
}

Cost cost(const Problem& pb, const Knobs& knobs) { return alltoall_shared.cost(pb, knobs); }

}  // namespace

const Algorithm alltoall_attached{.collective = Collective::alltoall, .name = "attached",
                                  .rejects = rejects, .cuts = cuts, .build = build,
                                  .cost = cost, .attached = true};

}  // namespace paceline
