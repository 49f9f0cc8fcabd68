// Linear scatter: the root sends every rank its unit.
//
// Source   elementary; MPI: A Message-Passing Interface Standard 4.1, section 6.6 defines it so.
// Needs    nothing: any p >= 1, any root, any counts; only the root has to know the others' counts.
// Cost     (p-1) alpha + (p-1)/p n beta at the root, n the whole message
//          (exact when the units are equal)
// Scratch  none
// When     long units, or counts that only the root knows.
// Order    moves data only.
//
// p = 3, root 0, units A B C.
//                 rank 0            rank 1            rank 2
//   start         A    B    C
//   end           A    B    C       B                 C
#include "ir/algorithm.hpp"

namespace paceline {
namespace {

void build(const Problem& pb, const Knobs&, Builder& b) {
  if (pb.rank != pb.root) return b.recv(pb.root, {b.output(pb.rank)});
  b.copy(b.input(pb.root), b.output(pb.root));
  for (int k = 1; k < pb.ranks; ++k) {
    const int to = (pb.root + k) % pb.ranks;
    b.send(to, {b.input(to)});
  }
}

Cost cost(const Problem& pb, const Knobs&) {
  return {.rounds = pb.ranks - 1.0, .volume = double(pb.ranks - 1) / pb.ranks, .reduced = 0,
          .messages = pb.ranks - 1.0};
}

}  // namespace

extern const Algorithm scatter_linear{
    .collective = Collective::scatter, .name = "linear", .build = build, .cost = cost};

}  // namespace paceline
