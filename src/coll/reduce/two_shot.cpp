// Two-shot reduce: a node's ranks show their vectors and sum a slice each; the root gets all sums.
//
// Source   elementary: the allreduce of the same name, without its last step on the other ranks.
// Needs    ranks of one node. Any p >= 1, any root, any n >= 0; operands stay in rank order.
// Cost     B + 1 meetings; per rank (p-1)/p n copied in, (p-1)/p n gamma; the root copies (p-1)/p n
//          out.
// Scratch  2 (1 + 1/p) n / B
// When     long messages of many ranks on one node: the sums are spread over all of them.
// Order    rank order from left to right: same bits in every run.
//
// p = 2, one block, root 0, slices A B; a digit is a contribution, * is final.
//              rank 0              rank 1
//              buffer    stage     buffer    stage
//   start      A0 B0               A1 B1
//   show       A0 B0     B0        A1 B1     A1
//   meet
//   sum        A* B0     B0        A1 B1     A1 B*
//   meet
//   collect    A* B*
#include "base/str.hpp"
#include "coll/staged.hpp"
#include "ir/algorithm.hpp"

namespace paceline {
namespace {

int cuts(const Problem& pb, const Knobs& knobs) { return pb.ranks * blocks_of(knobs); }

std::optional<Reason> rejects(const Problem& pb) {
  if (pb.ranks > kSourcesAtOnce && !pb.canonical)
    return Reason{str("a rank sums at most ", kSourcesAtOnce, " slices at once"), "binomial"};
  return {};
}

void show(Builder& b, int first, const Segment& shown) {
  const int p = b.problem().ranks, r = b.problem().rank;
  const auto part = [&](int slice, int slices) {
    if (slices > 0)
      b.copy(b.input(first + slice, slices), b.part(shown, first + slice, slices));
  };
  part(0, r);
  part(r + 1, p - r - 1);
}

void build(const Problem& pb, const Knobs& knobs, Builder& b) {
  const int p = pb.ranks, r = pb.rank, blocks = blocks_of(knobs);
  const Turns shown(b, b.output(0, p), blocks), sums(b, b.output(0), blocks);
  for (int turn = 0; turn <= blocks; ++turn) {
    const int first = block_at(turn, blocks) * p, before = first + p;
    if (turn < blocks) show(b, first, shown.slot(turn, b.output(first, p)));
    meet(b);
    for (int k = 1; k < p && turn > 0 && r == pb.root; ++k) {
      const Segment slice = b.output(before + (r + k) % p);
      b.copy(b.of_peer((r + k) % p, sums.slot(turn - 1, slice)), slice);
    }
    if (turn == blocks) break;
    const Segment slice = b.output(first + r), sum_of = sums.slot(turn, slice);
    const Segment target = r == pb.root ? slice : sum_of;
    const Segment staged = b.part(shown.slot(turn, b.output(first, p)), first + r, 1);
    sum(b, of_everybody(b, staged, b.input(first + r)), target);
    b.finish(target);
  }
}

}  // namespace

extern const Algorithm reduce_two_shot{
    .collective = Collective::reduce, .name = "two_shot", .rejects = rejects, .cuts = cuts,
    .build = build, .cost = cost_of_slices, .takes = kTakesBlocks, .access = Access::staging,
    .bits = Bits::by_rank};

}  // namespace paceline
