// Tail allreduce with the bits of a ring: early ranks keep what has come, and add in ring order.
//
// Source   ours (docs/design/0041-late-ranks.md): tail_direct whose owners add as allreduce/ring
//          does, so that a call may go over to it from a ring and back.
// Needs    commutative op, late ranks known to all. Any p >= 1, any n >= 0.
// Cost     as tail_direct, but an owner adds what comes before a late rank in ring order while it
//          waits for that rank.
// Scratch  (p - 1)/m n elements: what has come is kept until all is there.
// When     long messages, few ranks late by more than about half of n beta, and bits that must not
//          depend on which ranks are late, where the usual call is a ring. blocks: passes B.
// Order    block i of p in ring order from rank i + 1 to rank i: the bits of ring in as many
//          segments, whichever ranks are predicted late. A slice may hold parts of several blocks.
//
// p = 3, rank 2 is late, slices A B in one pass; a digit is a contribution, * is final. A is block
// 0 and half of block 1, B is the rest.
//                 rank 0            rank 1            rank 2
//   start         A0   B0           A1   B1
//   round 0       A0 A1                  B0 B1
//   it enters     A0 A1                  B01           A2   B2
//   round 1       A*                     B01           A2   B2
//   round 2       A*                A*   B*            A*   B2
//   round 3       A*   B*           A*   B*            A*   B*
#include <numeric>

#include "coll/rejects.hpp"
#include "coll/tail.hpp"
#include "ir/algorithm.hpp"

namespace paceline {
namespace {

constexpr int kFine = 64;   // blocks of a slice: enough for slices that differ by one of them

// Number of parts of a block of the ring. Slices of early ranks begin and end at parts: all slices
// have equally many if that takes few; a slice has at least one for each pass.
int parts_of(const Problem& pb, const Knobs& knobs) {
  const Sides sides(pb);
  const int p = pb.ranks, m = sides.waiting(), passes = Tail::passes_of(sides, knobs);
  const int both = std::gcd(p, m), equal = p / both;   // parts of a slice, and m / both of a block
  if (equal <= kFine) return (passes + equal - 1) / equal * (m / both);
  return (std::max(passes, kFine) * m + p - 1) / p;
}

std::optional<Reason> rejects(const Problem& pb) {
  return unless_commutative(pb, "a ring sums in ring order", "tail_direct");
}

int cuts(const Problem& pb, const Knobs& knobs) { return pb.ranks * parts_of(pb, knobs); }

// Adds one operand after the other, each sum rounded as on its way round the ring. Sums that are
// not yet complete are kept in the slot of the first operand that is no input.
void add_in_turn(Builder& b, const std::vector<Segment>& operands, const Segment& target) {
  if (operands.size() == 1) return b.copy(operands[0], target);
  const Segment kept = operands[operands[0].space == Space::scratch ? 0 : 1];
  Segment sum = operands[0];
  for (std::size_t i = 1; i < operands.size(); ++i) {
    const Segment& to = i + 1 == operands.size() ? target : kept;
    b.reduce({sum, operands[i]}, to);
    sum = to;
  }
}

// A slice may hold parts of several blocks.
void add(Builder& b, int parts, const std::vector<Segment>& slots, Tail::Range own) {
  const int p = b.problem().ranks, end = own.first + own.blocks;
  for (int first = own.first; first < end;) {
    const int block = first / parts;
    const Tail::Range part{first, std::min(end, (block + 1) * parts) - first};
    std::vector<Segment> operands;
    for (int k = 1; k <= p; ++k)
      operands.push_back(Tail::part(b, slots[std::size_t((block + k) % p)], part));
    add_in_turn(b, operands, Tail::output(b, part));
    first += part.blocks;
  }
  b.finish(Tail::output(b, own));
}

void build(const Problem& pb, const Knobs& knobs, Builder& b) {
  const int parts = parts_of(pb, knobs);
  b.cut_within(parts);
  const Tail tail(pb, knobs, pb.ranks * parts);
  if (tail.sides.is_late) {
    tail.give(b);
    return tail.hear(b);
  }
  const std::vector<Segment> slots = tail.slots(b);
  for (int pass = 0; pass < tail.passes; ++pass) {
    const Tail::Range own = tail.piece(tail.sides.at, pass);
    tail.take(b, slots, own);
    add(b, parts, slots, own);
    tail.spread(b, pass);
  }
}

}  // namespace

extern const Algorithm allreduce_tail_as_ring{
    .collective = Collective::allreduce, .name = "tail_as_ring", .rejects = rejects, .cuts = cuts,
    .build = build, .cost = Tail::cost, .takes = kTakesBlocks, .arrivals = Arrivals::predicted,
    .bits = Bits::by_ring};

}  // namespace paceline
