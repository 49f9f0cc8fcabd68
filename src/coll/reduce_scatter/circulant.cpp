// Circulant reduce-scatter: in every round half of what is left travels on, half as far each time.
//
// Source   J. L. Traeff: Optimal, non-pipelined reduce-scatter and allreduce algorithms.
//          arXiv 2410.14234, 2024. Here after its definition; what is sent is not rotated first but
//          named in place, as a list of at most three stretches.
// Needs    commutative op. Any p >= 1, any counts, zero among them.
// Cost     ceil(log2 p) alpha + (p-1)/p n (beta + gamma) (exact when the units are equal and p is a
//          power of two; otherwise a part of gamma is hidden). With radix k: k - 1 messages in each
//          of ceil(log_k p) rounds.
// Scratch  at most 5/4 n: half for sums, half and a quarter for what arrives, in turn.
// When     the default for all but the shortest messages: both bounds are met, for any p.
// Order    the sum for rank r combines what is held 0, 1, ... places before it, in a tree that only
//          depends on p: same bits in every run.
//
// p = 3, blocks A B C; a digit is a contribution, * is final. Partial sums are in scratch.
//                 rank 0            rank 1            rank 2
//   start         A0   B0   C0      A1   B1   C1      A2   B2   C2
//   round 0       A01                    B12                    C02
//   round 1       A*                     B*                     C*
#include "coll/around.hpp"
#include "coll/rejects.hpp"
#include "ir/algorithm.hpp"
#include "shapes/circulant.hpp"

namespace paceline {
namespace {

int radix_of(const Knobs& knobs) { return knobs.radix > 1 ? knobs.radix : 2; }

std::optional<Reason> rejects(const Problem& pb) {
  return unless_commutative(pb, "operands start at another rank for every block", "direct");
}

// Offset i is the block r + i, which belongs to the rank i places on.
void build(const Problem& pb, const Knobs& knobs, Builder& b) {
  const int p = pb.ranks, r = pb.rank;
  const std::vector<CirculantRound> rounds = circulant_rounds(p, radix_of(knobs));
  if (rounds.empty()) b.copy(b.input(r), b.output(r));
  const Around mine(b.input(), r);
  const Around sums = mine.scratch(b, 0, rounds.empty() ? 0 : rounds[0].kept);
  std::vector<Around> spare[2];
  int summed = 0;   // offsets below are in `sums`, the others as they came
  for (std::size_t k = 0; k < rounds.size(); ++k) {
    const CirculantRound& round = rounds[k];
    int now = summed;
    std::size_t port = 0;
    for (int d : round.distances()) {
      const int length = round.length(d), end = d + length;
      if (spare[k % 2].size() == port) spare[k % 2].push_back(mine.scratch(b, 0, round.kept));
      const std::vector<Segment> came = spare[k % 2][port++].at(0, length);
      std::vector<Segment> message = sums.at(d, std::min(end, summed));
      for (const Segment& other : mine.at(std::max(d, summed), end)) message.push_back(other);
      b.send((r + d) % p, message);
      b.recv((r - d + p) % p, came);
      const std::vector<Segment> own = (now > 0 ? sums : mine).at(0, length);
      std::vector<Segment> target = sums.at(0, length);
      if (round.kept == 1 && end == round.held) target = {b.output(r)};   // the last message
      // The farthest first: they travel on in the next round.
      for (std::size_t i = came.size(); i-- > 0;) b.reduce({own[i], came[i]}, target[i]);
      now = std::max(now, length);
    }
    summed = now;
  }
  b.finish(b.output(r));
}

Cost cost(const Problem& pb, const Knobs& knobs) {
  const double share = double(pb.ranks - 1) / pb.ranks;
  return {.rounds = double(circulant_messages(pb.ranks, radix_of(knobs))),
          .volume = share, .reduced = share};
}

}  // namespace

extern const Algorithm reduce_scatter_circulant{
    .collective = Collective::reduce_scatter, .name = "circulant", .rejects = rejects,
    .build = build, .cost = cost, .takes = kTakesRadix};

}  // namespace paceline
