// One-shot allreduce: every rank shows its vector, and every rank sums all of them.
//
// Source   elementary; as in DeepSpeed's collectives for short messages, here with rank order kept
//          and no closing barrier (docs/design/0019-straight.md).
// Needs    ranks of one node. Any p >= 1, any n >= 0; operands stay in rank order.
// Cost     one signal from every rank to every other one; n copied and (p-1) n gamma on every rank.
// Scratch  n
// When     short messages on one node: the fewest signals there can be.
// Order    rank order from left to right: same bits on every rank and in every run.
//
// p = 2; a digit is a contribution, * is final; the stage is the scratch that the other one reads.
//              rank 0            rank 1
//              buffer  stage     buffer  stage
//   start      A0                A1
//   show       A0      A0        A1      A1
//   meet
//   sum        A*                A*
#include "coll/staged.hpp"
#include "ir/algorithm.hpp"

namespace paceline {
namespace {

// Reads the own vector where it is: its copy has just gone to the peers' caches. With more sources
// than are summed at once it reads the copy, since the output, which may be the input, is written
// before.
void build(const Problem& pb, const Knobs&, Builder& b) {
  const Segment shown = b.scratch(b.output());
  b.copy(b.input(), shown);
  meet(b);
  sum(b, of_everybody(b, shown, pb.ranks > kSourcesAtOnce ? shown : b.input()), b.output());
  b.finish(b.output());
}

Cost cost(const Problem& pb, const Knobs&) {
  if (pb.ranks == 1) return {};
  return {.rounds = 1, .reduced = pb.ranks - 1.0, .copied = 1};
}

}  // namespace

extern const Algorithm allreduce_one_shot{
    .collective = Collective::allreduce, .name = "one_shot", .build = build, .cost = cost,
    .access = Access::staging, .bits = Bits::by_rank};

}  // namespace paceline
