// Gathering allreduce: every rank gathers all vectors as they are and adds them up by itself.
//
// Source   J. Bruck, C.-T. Ho, S. Kipnis, E. Upfal, D. Weathersby: Efficient algorithms for
//          all-to-all communications in multiport message-passing systems. IEEE Trans. Parallel
//          Distrib. Syst. 8(11):1143-1156, 1997. doi 10.1109/71.642949. Its allgather, with the
//          skips of J. L. Traeff, arXiv 2410.14234, 2024, and every rank's own sum after it.
// Needs    nothing: any p >= 1, any n >= 0, operands stay in rank order.
// Cost     ceil(log2 p) alpha + (p-1) n (beta + gamma) (beyond 16 ranks a part of gamma is hidden).
//          With radix k: k - 1 messages in each of ceil(log_k p) rounds.
// Scratch  (p-1) n elements: all vectors but the own; beyond 16 ranks a sixteenth more.
// When     a few hundred bytes at most, where p is no power of two: the fewest rounds for any p.
// Order    rank order from left to right; beyond 16 ranks first in equal groups of at most 16: same
//          bits on every rank and in every run, however the message is cut.
//
// p = 3; a digit is a contribution, * is final. Received data is in scratch.
//                 rank 0    rank 1    rank 2
//   start         0         1         2
//   round 0       0 1       1 2       2 0
//   round 1       0 1 2     1 2 0     2 0 1
//   sum           *         *         *
#include <algorithm>

#include "coll/sums.hpp"
#include "ir/algorithm.hpp"
#include "shapes/circulant.hpp"

namespace paceline {
namespace {

int radix_of(const Knobs& knobs) { return knobs.radix > 1 ? knobs.radix : 2; }

// Offset i is the vector of the rank i places on.
void build(const Problem& pb, const Knobs& knobs, Builder& b) {
  const int p = pb.ranks, r = pb.rank;
  std::vector<Segment> vectors{b.input()};   // by offset
  const std::vector<CirculantRound> rounds = circulant_rounds(p, radix_of(knobs));
  for (auto round = rounds.rbegin(); round != rounds.rend(); ++round)
    for (int d : round->distances()) {
      std::vector<Segment> came;
      for (int i = 0; i < round->length(d); ++i) came.push_back(b.scratch(b.input()));
      b.send((r - d + p) % p, std::vector(vectors.begin(), vectors.begin() + round->length(d)));
      b.recv((r + d) % p, came);
      vectors.insert(vectors.end(), came.begin(), came.end());
    }
  std::rotate(vectors.begin(), vectors.end() - r, vectors.end());   // by rank
  if (p > 1) sum_in_groups(b, vectors, b.output());
  else b.copy(b.input(), b.output());
  b.finish(b.output());
}

Cost cost(const Problem& pb, const Knobs& knobs) {
  return {.rounds = double(circulant_messages(pb.ranks, radix_of(knobs))),
          .volume = pb.ranks - 1.0, .reduced = pb.ranks - 1.0};
}

}  // namespace

extern const Algorithm allreduce_gather{
    .collective = Collective::allreduce, .name = "gather", .build = build, .cost = cost,
    .takes = kTakesRadix, .bits = Bits::by_rank};

}  // namespace paceline
