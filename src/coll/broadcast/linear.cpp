// Linear broadcast: the root sends the message to everybody itself.
//
// Source   elementary; MPI: A Message-Passing Interface Standard 4.1, section 6.4 defines it so.
// Needs    nothing: any p >= 1, any n >= 0, any root.
// Cost     (p-1) (alpha + n beta)
// Scratch  none
// When     two or three ranks, or a root that can serve all at once.
// Order    moves data only.
//
// p = 3, root 0; * knows the message.
//                 rank 0    rank 1    rank 2
//   start         *
//   round 0       *         *
//   round 1       *         *         *
#include "ir/algorithm.hpp"

namespace paceline {
namespace {

int cuts(const Problem&, const Knobs&) { return 1; }

void build(const Problem& pb, const Knobs&, Builder& b) {
  if (pb.rank != pb.root) return b.recv(pb.root, {b.output()});
  for (int k = 1; k < pb.ranks; ++k) b.send((pb.root + k) % pb.ranks, {b.output()});
}

Cost cost(const Problem& pb, const Knobs&) {
  return {.rounds = pb.ranks - 1.0, .volume = pb.ranks - 1.0, .reduced = 0};
}

}  // namespace

extern const Algorithm broadcast_linear{
    .collective = Collective::broadcast, .name = "linear", .cuts = cuts, .build = build,
    .cost = cost};

}  // namespace paceline
