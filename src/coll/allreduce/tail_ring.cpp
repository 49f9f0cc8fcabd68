// Tail ring allreduce: early ranks sum by a ring, and late ranks give their part when they enter.
//
// Source   none known. Near to it: A. Devraj et al.: StragglAR, arXiv 2505.23523, for one late rank
//          and even p; here any number of them, and any p.
// Needs    commutative op, late ranks known to all; where sums are stable the operation is exact.
//          Any p >= 1, any n >= 0.
// Cost     of k late ranks and m = p - k others, in B passes: (m-1) (alpha + n/m (beta + gamma))
//          before the last one enters; after it about max(1, (p-1+k)/p) n beta (1 + 1/B)
//          + B (p-1) alpha. Nobody late: a ring whose second half goes in B pieces.
// Scratch  at most 4 slices of n/m, and k more for what late ranks give.
// When     long messages, few ranks late by more than about half of n beta. blocks: passes B.
// Order    slice j in ring order from early rank j + 1 to j, then late ranks in rank order: same
//          bits on every rank, and in every run in which the same ranks are predicted late.
//
// p = 3, rank 2 is late, slices A B in one pass; a digit is a contribution, * is final.
//                 rank 0            rank 1            rank 2
//   start         A0   B0           A1   B1
//   round 0       A01                    B01
//   it enters     A01                    B01          A2   B2
//   round 1       A*                     B01          A2   B2
//   round 2       A*                A*   B*           A*   B2
//   round 3       A*   B*           A*   B*           A*   B*
#include "coll/rejects.hpp"
#include "coll/tail.hpp"
#include "ir/algorithm.hpp"

namespace paceline {
namespace {

std::optional<Reason> rejects(const Problem& pb) {
  return unless_commutative(pb, "a ring sums in ring order", "tail_direct");
}

// The sum of what the early ranks have of this rank's slice, which travels round them.
Segment sum_of_early(const Tail& tail, Builder& b) {
  const int m = tail.sides.waiting(), at = tail.sides.at;
  const auto mine = [&](int place) { return Tail::input(b, tail.slice(place)); };
  Segment travels = mine(at - 1);
  if (m == 1) return travels;
  const Segment came[2] = {b.scratch(travels), b.scratch(travels)};
  const Segment partial[2] = {b.scratch(travels), b.scratch(travels)};
  for (int k = 0; k < m - 1; ++k) {
    const Segment own = mine(at - k - 2 + m);
    const Segment arrived = b.as(came[k % 2], own), sum = b.as(partial[k % 2], own);
    b.send(tail.sides.early_at(at + 1), {travels});
    b.recv(tail.sides.early_at(at - 1), {arrived});
    b.reduce({arrived, own}, sum);
    travels = sum;
  }
  return travels;
}

void build(const Problem& pb, const Knobs& knobs, Builder& b) {
  const Tail tail(pb, knobs);
  if (tail.sides.is_late) {
    tail.give(b);
    return tail.hear(b);
  }
  const Segment early = sum_of_early(tail, b);
  std::vector<int> late = tail.sides.late;
  std::sort(late.begin(), late.end());   // in this order they are added
  for (int pass = 0; pass < tail.passes; ++pass) {
    const Tail::Range piece = tail.piece(tail.sides.at, pass);
    const Segment sum = Tail::output(b, piece);
    std::vector<Segment> all{tail.part(b, early, piece)};
    for (int rank : late) {
      all.push_back(b.scratch(Tail::input(b, piece)));
      b.recv(rank, {all.back()});
    }
    if (late.empty()) b.copy(all.front(), sum);
    else b.reduce(all, sum);
    b.finish(sum);
    tail.spread(b, pass);
  }
}

}  // namespace

extern const Algorithm allreduce_tail_ring{
    .collective = Collective::allreduce, .name = "tail_ring", .rejects = rejects,
    .cuts = Tail::cuts, .build = build, .cost = Tail::cost, .takes = kTakesBlocks,
    .arrivals = Arrivals::predicted};

}  // namespace paceline
