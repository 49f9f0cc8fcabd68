// Tail direct reduce: early ranks keep what has come, and add all when late ranks have given.
//
// Source   ours (docs/design/0041-late-ranks.md): the transposed reduce (see
//          direct) in which late ranks own nothing.
// Needs    late ranks known to all. Any p >= 1, any n >= 0, any root, operands stay in rank order.
// Cost     of k late ranks and m = p - k others, in B passes: (m-1) (alpha + n/m beta) before the
//          last one enters; after it about n beta (1 + 1/B) + B m alpha, and p n/m gamma behind it
// Scratch  (p - 1)/m n elements, and n/m but at the root.
// When     long messages, few ranks late by more than about half of n beta, and bits that must not
//          depend on which ranks are late. blocks: passes B.
// Order    rank order, beyond 16 ranks in groups: the bits of direct, whichever ranks are predicted
//          late.
//
// p = 3, root 0, rank 2 is late, slices A B in one pass; a digit is a contribution, * is final.
//                 rank 0            rank 1            rank 2
//   start         A0   B0           A1   B1
//   round 0       A0 A1                  B0 B1
//   it enters     A0 A1                  B0 B1        A2   B2
//   round 1       A*                     B0 B1             B2
//   round 2       A*                     B*
//   round 3       A*   B*
#include "coll/tail.hpp"
#include "ir/algorithm.hpp"

namespace paceline {
namespace {

// The root hears every piece from its owner.
void collect(const Tail& tail, Builder& b, int pass) {
  for (int k = 0; k < tail.sides.waiting(); ++k)
    if (const int owner = tail.sides.early_at(k); owner != b.problem().rank)
      b.recv(owner, {Tail::output(b, tail.piece(k, pass))});
}

void build(const Problem& pb, const Knobs& knobs, Builder& b) {
  const Tail tail(pb, knobs);
  const bool is_root = pb.rank == pb.root;
  if (tail.sides.is_late) tail.give(b);
  const std::vector<Segment> slots =
      tail.sides.is_late ? std::vector<Segment>{} : tail.slots(b);
  for (int pass = 0; pass < tail.passes; ++pass) {
    if (!tail.sides.is_late) {
      const Tail::Range own = tail.piece(tail.sides.at, pass);
      const Segment sum = is_root ? Tail::output(b, own) : b.scratch(Tail::input(b, own));
      tail.add(b, slots, pass, sum);
      if (!is_root) b.send(pb.root, {sum});
    }
    if (is_root) collect(tail, b, pass);
  }
}

}  // namespace

extern const Algorithm reduce_tail_direct{
    .collective = Collective::reduce, .name = "tail_direct", .cuts = Tail::cuts, .build = build,
    .cost = Tail::cost, .takes = kTakesBlocks, .arrivals = Arrivals::predicted,
    .bits = Bits::by_rank};

}  // namespace paceline
