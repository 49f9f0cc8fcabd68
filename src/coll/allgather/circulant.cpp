// Circulant allgather: in every round what is known doubles, from twice as far each time.
//
// Source   J. Bruck, C.-T. Ho, S. Kipnis, E. Upfal, D. Weathersby: Efficient algorithms for
//          all-to-all communications in multiport message-passing systems. IEEE Trans. Parallel
//          Distrib. Syst. 8(11):1143-1156, 1997. doi 10.1109/71.642949. Here with the skips of
//          J. L. Traeff, arXiv 2410.14234, 2024, and without its final rotation.
// Needs    nothing: any p >= 1, any counts, zero among them.
// Cost     ceil(log2 p) alpha + (p-1)/p n beta, n the whole result (exact when the units are
//          equal). With radix k: k - 1 messages in each of ceil(log_k p) rounds.
// Scratch  none
// When     always a good choice: both bounds are met, for any p.
// Order    moves data only.
//
// p = 3, units A B C.
//                 rank 0            rank 1            rank 2
//   start         A                      B                      C
//   round 0       A    B                 B    C       A         C
//   round 1       A    B    C       A    B    C       A    B    C
#include "coll/around.hpp"
#include "ir/algorithm.hpp"
#include "shapes/circulant.hpp"

namespace paceline {
namespace {

int radix_of(const Knobs& knobs) { return knobs.radix > 1 ? knobs.radix : 2; }

// Offset i is the unit of the rank i places on.
void build(const Problem& pb, const Knobs& knobs, Builder& b) {
  const int p = pb.ranks, r = pb.rank;
  const Around all(b.output(), r);
  b.copy(b.input(r), b.output(r));
  const std::vector<CirculantRound> rounds = circulant_rounds(p, radix_of(knobs));
  for (auto round = rounds.rbegin(); round != rounds.rend(); ++round)
    for (int d : round->distances()) {
      const int length = round->length(d);
      b.send((r - d + p) % p, all.at(0, length));
      b.recv((r + d) % p, all.at(d, d + length));
    }
}

Cost cost(const Problem& pb, const Knobs& knobs) {
  return {.rounds = double(circulant_messages(pb.ranks, radix_of(knobs))),
          .volume = double(pb.ranks - 1) / pb.ranks, .reduced = 0};
}

}  // namespace

extern const Algorithm allgather_circulant{
    .collective = Collective::allgather, .name = "circulant", .build = build, .cost = cost,
    .takes = kTakesRadix};

}  // namespace paceline
