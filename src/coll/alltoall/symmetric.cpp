// Shared alltoall: every rank fetches what the others have for it.
//
// Source   ours (docs/design/0014-shared-buffers.md); single copies by help of the kernel: T. Ma,
//          G. Bosilca, A. Bouteiller, J. Dongarra: Kernel-assisted and topology-aware MPI
//          collective communications on multi-core/many-core platforms. J. Parallel Distrib.
//          Comput. 73(7):1000-1010, 2013.
// Needs    buffers that all ranks reach, separate ones for input and output. Any p >= 1, equal
//          units.
// Cost     no message but 4 (p-1) signals a rank; n copied by every rank
// Scratch  none
// When     buffers of paceline.empty on one node.
// Order    moves data only.
//
// p = 2; a letter is what a rank has for the rank of that letter (a for 0, b for 1).
//                 rank 0           rank 1
//   start         a0   b0          a1   b1
//   meet
//   fetch         a0   a1          b0   b1
//   meet
#include "coll/shared.hpp"
#include "ir/algorithm.hpp"

namespace paceline {
namespace {

std::optional<Reason> rejects(const Problem& pb) {
  if (pb.in_place)
    return Reason{"in place, units would be overwritten before their owners have them",
                  "pairwise"};
  return {};
}

void build(const Problem& pb, const Knobs&, Builder& b) {
  const int p = pb.ranks, r = pb.rank;
  meet(b);
  b.copy(b.input(r), b.output(r));
  for (int k = 1; k < p; ++k) {
    const int from = (r + k) % p;
    b.copy(b.of_peer(from, b.input(r)), b.output(from));
  }
  meet(b);
}

Cost cost(const Problem& pb, const Knobs&) {
  if (pb.ranks == 1) return {};
  return {.rounds = 2, .copied = 1};
}

}  // namespace

extern const Algorithm alltoall_symmetric{
    .collective = Collective::alltoall, .name = "symmetric", .rejects = rejects, .build = build,
    .cost = cost, .access = Access::symmetric};

}  // namespace paceline
