// Tail direct allreduce: early ranks keep what has come, and add all when late ranks have given.
//
// Source   ours (docs/design/0041-late-ranks.md): the transposed allreduce (see
//          direct) in which late ranks own nothing.
// Needs    late ranks known to all. Any p >= 1, any n >= 0, operands stay in rank order.
// Cost     of k late ranks and m = p - k others, in B passes: (m-1) (alpha + n/m beta) before the
//          last one enters; after it about max(1, (p-1+k)/p) n beta (1 + 1/B) + B (p-1) alpha, and
//          p n/m gamma behind that. No rank late: direct, whose second half goes round in B pieces.
// Scratch  (p - 1)/m n elements: what has come is kept until all is there.
// When     long messages, few ranks late by more than about half of n beta, and bits that must not
//          depend on which ranks are late. blocks: passes B.
// Order    rank order, beyond 16 ranks in groups: the bits of direct, whichever ranks are predicted
//          late.
//
// p = 3, rank 2 is late, slices A B in one pass; a digit is a contribution, * is final.
//                 rank 0            rank 1            rank 2
//   start         A0   B0           A1   B1
//   round 0       A0 A1                  B0 B1
//   it enters     A0 A1                  B0 B1        A2   B2
//   round 1       A*                     B0 B1        A2   B2
//   round 2       A*                A*   B*           A*   B2
//   round 3       A*   B*           A*   B*           A*   B*
#include "coll/tail.hpp"
#include "ir/algorithm.hpp"

namespace paceline {
namespace {

void build(const Problem& pb, const Knobs& knobs, Builder& b) {
  const Tail tail(pb, knobs);
  if (tail.sides.is_late) {
    tail.give(b);
    return tail.hear(b);
  }
  const std::vector<Segment> slots = tail.slots(b);
  for (int pass = 0; pass < tail.passes; ++pass) {
    tail.add(b, slots, pass, Tail::output(b, tail.piece(tail.sides.at, pass)));
    tail.spread(b, pass);
  }
}

}  // namespace

extern const Algorithm allreduce_tail_direct{
    .collective = Collective::allreduce, .name = "tail_direct", .cuts = Tail::cuts, .build = build,
    .cost = Tail::cost, .takes = kTakesBlocks, .arrivals = Arrivals::predicted,
    .bits = Bits::by_rank};

}  // namespace paceline
