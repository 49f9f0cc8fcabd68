// Pairwise alltoall: in round k all send to the rank k places on and receive from k places back.
//
// Source   R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication
//          operations in MPICH. Int. J. High Perform. Comput. Appl. 19(1):49-66, 2005.
//          doi 10.1177/1094342005051521
// Needs    nothing: any p >= 1, any counts, zero among them.
// Cost     (p-1) alpha + (p-1)/p n beta, n what one rank sends (exact when the units are equal)
// Scratch  none; (p-1)/p n in place, where every unit is staged before its block is received into.
// When     long units. Short ones pay p - 1 rounds.
// Order    moves data only.
//
// p = 3; XY is what rank X has for rank Y.
//                 rank 0            rank 1            rank 2
//   start         00   01   02      10   11   12      20   21   22
//   round 1       00        20      01   11                12   22
//   round 2       00   10   20      01   11   21      02   12   22
#include "ir/algorithm.hpp"

namespace paceline {
namespace {

void build(const Problem& pb, const Knobs&, Builder& b) {
  const int p = pb.ranks, r = pb.rank;
  b.copy(b.input(r), b.output(r));
  std::vector<Segment> outgoing(static_cast<std::size_t>(p));
  for (int i = 0; i < p; ++i) {
    Segment& unit = outgoing[static_cast<std::size_t>(i)];
    unit = b.input(i);
    if (!pb.in_place || i == r) continue;
    unit = b.scratch(b.input(i));
    b.copy(b.input(i), unit);
  }
  for (int k = 1; k < p; ++k) {
    const int to = (r + k) % p, from = (r - k + p) % p;
    b.send(to, {outgoing[static_cast<std::size_t>(to)]});
    b.recv(from, {b.output(from)});
  }
}

Cost cost(const Problem& pb, const Knobs&) {
  return {.rounds = pb.ranks - 1.0, .volume = double(pb.ranks - 1) / pb.ranks, .reduced = 0};
}

}  // namespace

extern const Algorithm alltoall_pairwise{
    .collective = Collective::alltoall, .name = "pairwise", .build = build, .cost = cost};

}  // namespace paceline
