// Linear allgather: every rank sends its unit to every other one, to the next first.
//
// Source   elementary; MPI: A Message-Passing Interface Standard 4.1, section 6.7 defines it so.
// Needs    nothing: any p >= 1, any counts, zero among them.
// Cost     (p-1) alpha + (p-1)/p n beta, n the whole result (exact when the units are equal)
// Scratch  none
// When     long units and few ranks: no message waits for another, so a late rank delays its own
//          unit alone.
// Order    moves data only.
//
// p = 3, units A B C.
//                 rank 0            rank 1            rank 2
//   start         A                      B                      C
//   round 0       A         C       A    B                 B    C
//   round 1       A    B    C       A    B    C       A    B    C
#include "ir/algorithm.hpp"

namespace paceline {
namespace {

void build(const Problem& pb, const Knobs&, Builder& b) {
  const int p = pb.ranks, r = pb.rank;
  b.copy(b.input(r), b.output(r));
  for (int k = 1; k < p; ++k) {
    const int to = (r + k) % p, from = (r - k + p) % p;
    b.send(to, {b.input(r)});
    b.recv(from, {b.output(from)});
  }
}

Cost cost(const Problem& pb, const Knobs&) {
  return {.rounds = pb.ranks - 1.0, .volume = double(pb.ranks - 1) / pb.ranks, .reduced = 0};
}

}  // namespace

extern const Algorithm allgather_linear{
    .collective = Collective::allgather, .name = "linear", .build = build, .cost = cost};

}  // namespace paceline
