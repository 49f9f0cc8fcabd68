// Shared broadcast: everybody fetches the message from where it lies at the root.
//
// Source   ours (docs/design/0014-shared-buffers.md); single copies by help of the kernel: T. Ma,
//          G. Bosilca, A. Bouteiller, J. Dongarra: Kernel-assisted and topology-aware MPI
//          collective communications on multi-core/many-core platforms. J. Parallel Distrib.
//          Comput. 73(7):1000-1010, 2013.
// Needs    buffers that all ranks reach. Any p >= 1, any n >= 0.
// Cost     no message but 2 (p-1) signals of the root; n copied by every other rank
// Scratch  none
// When     buffers of paceline.empty on one node.
// Order    moves data only.
//
// p = 3, root 0.
//                 rank 0    rank 1    rank 2
//   start         A
//   fetch         A         A         A
#include "coll/registry.hpp"

namespace paceline {
namespace {

int cuts(const Problem&, const Knobs&) { return 1; }

void build(const Problem& pb, const Knobs&, Builder& b) {
  if (pb.rank != pb.root) {
    b.wait(pb.root);
    b.copy(b.of_peer(pb.root, b.output()), b.output());
    return b.signal(pb.root);
  }
  for (int k = 1; k < pb.ranks; ++k) b.signal((pb.root + k) % pb.ranks);
  for (int k = 1; k < pb.ranks; ++k) b.wait((pb.root + k) % pb.ranks);
}

Cost cost(const Problem& pb, const Knobs&) {
  return {.rounds = pb.ranks > 1 ? 2.0 : 0.0, .volume = 0, .reduced = 0};
}

}  // namespace

const Algorithm broadcast_shared{
    Collective::broadcast, "shared", serves_all, cuts, build, cost, {}, false, true};

}  // namespace paceline
