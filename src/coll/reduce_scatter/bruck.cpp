// Bruck's reduce-scatter: units travel to their owners unsummed, many in one message.
//
// Source   J. Bruck, C.-T. Ho, S. Kipnis, E. Upfal, D. Weathersby: Efficient algorithms for
//          all-to-all communications in multiport message-passing systems. IEEE Trans. Parallel
//          Distrib. Syst. 8(11):1143-1156, 1997. doi 10.1109/71.642949. Its alltoall, with every
//          owner's sum after it.
// Needs    nothing: any p >= 1, any counts, operands stay in rank order.
// Cost     ceil(log2 p) alpha + about log2(p)/2 n beta + (p-1)/p n gamma: exactly, n/p beta for
//          every 1 in the binary digits of 1, ..., p - 1, when the units are equal (beyond 16 ranks
//          a part of gamma is hidden)
// Scratch  less than 2 n: a unit for every d from 1 to p - 1, two where d has several digits 1.
// When     many ranks, short units, and operands that stay in order: a round for each digit of p
//          instead of one for each rank.
// Order    rank order from left to right; beyond 16 ranks first in equal groups of at most 16,
//          unless the order is to be canonical: same bits in every run.
//
// p = 4, units A B C D; a digit is a contribution, * is final. In round 0 what has an odd number of
// places to go goes one place on, in round 1 the rest goes two.
//                 rank 0         rank 1         rank 2         rank 3
//   start         A0 B0 C0 D0    A1 B1 C1 D1    A2 B2 C2 D2    A3 B3 C3 D3
//   round 0       A0 C0 A3 C3    B1 D1 B0 D0    C2 A2 C1 A1    D3 B3 D2 B2
//   round 1       A0 A3 A2 A1    B1 B0 B3 B2    C2 C1 C0 C3    D3 D2 D1 D0
//   sum           A*             B*             C*             D*
#include <algorithm>
#include <bit>

#include "coll/sums.hpp"
#include "ir/algorithm.hpp"
#include "shapes/binomial.hpp"

namespace paceline {
namespace {

// Unit d is at first one's own, to go d places on, at last the one that has come as far. It is
// received beside the one that is sent: into one of two slots in turn.
void build(const Problem& pb, const Knobs&, Builder& b) {
  const int p = pb.ranks, r = pb.rank;
  std::vector<Segment> now, spare(static_cast<std::size_t>(p));
  for (int d = 0; d < p; ++d) now.push_back(b.input((r + d) % p));
  for (int distance = 1; distance < p; distance *= 2) {
    std::vector<Segment> message, into;
    for (int d = distance; d < p; ++d) {
      if (!(d & distance)) continue;
      Segment &unit = now[static_cast<std::size_t>(d)], &other = spare[static_cast<std::size_t>(d)];
      const int left = d & ~(2 * distance - 1);   // places that what comes has yet to go
      const Segment shape = b.input((r + left) % p);
      message.push_back(unit);
      into.push_back(other.blocks > 0 ? Builder::as(other, shape) : b.scratch(shape));
      other = unit.space == Space::scratch ? unit : Segment{};
      unit = into.back();
    }
    b.send((r + distance) % p, message);
    b.recv((r - distance + p) % p, into);
  }
  std::reverse(now.begin() + 1, now.end());   // they have come from r - d: now from r + 1, ...
  std::rotate(now.begin(), now.end() - r, now.end());   // by rank
  if (p > 1) sum_in_groups(b, now, b.output(r));
  else b.copy(b.input(r), b.output(r));
  b.finish(b.output(r));
}

Cost cost(const Problem& pb, const Knobs&) {
  int moved = 0;
  for (unsigned d = 1; d < static_cast<unsigned>(pb.ranks); ++d) moved += std::popcount(d);
  return {.rounds = double(ceil_log2(pb.ranks)), .volume = double(moved) / pb.ranks,
          .reduced = double(pb.ranks - 1) / pb.ranks};
}

}  // namespace

extern const Algorithm reduce_scatter_bruck{
    .collective = Collective::reduce_scatter, .name = "bruck", .build = build, .cost = cost,
    .bits = Bits::by_rank};

}  // namespace paceline
