// Shared allgather: every rank fetches the units of the others from where they lie.
//
// Source   ours (docs/design/0014-shared-buffers.md); single copies by help of the kernel: T. Ma,
//          G. Bosilca, A. Bouteiller, J. Dongarra: Kernel-assisted and topology-aware MPI
//          collective communications on multi-core/many-core platforms. J. Parallel Distrib.
//          Comput. 73(7):1000-1010, 2013.
// Needs    buffers that all ranks reach. Any p >= 1, equal units.
// Cost     no message but 4 (p-1) signals a rank; n copied by every rank
// Scratch  none
// When     buffers of paceline.empty on one node.
// Order    moves data only.
//
// p = 2, units A B.
//                 rank 0       rank 1
//   start         A                 B
//   meet
//   fetch         A    B       A    B
//   meet
#include "coll/shared.hpp"
#include "ir/algorithm.hpp"

namespace paceline {
namespace {

void build(const Problem& pb, const Knobs&, Builder& b) {
  const int p = pb.ranks, r = pb.rank;
  meet(b);
  b.copy(b.input(r), b.output(r));
  for (int k = 1; k < p; ++k) {   // every rank begins with another one
    const int from = (r + k) % p;
    b.copy(b.of_peer(from, b.input(from)), b.output(from));
  }
  meet(b);
}

Cost cost(const Problem& pb, const Knobs&) {
  if (pb.ranks == 1) return {};
  return {.rounds = 2, .copied = 1};
}

}  // namespace

extern const Algorithm allgather_symmetric{
    .collective = Collective::allgather, .name = "symmetric", .build = build, .cost = cost,
    .access = Access::symmetric};

}  // namespace paceline
