// Arrival chain reduce: ranks add their vectors one after the other, as they come.
//
// Source   P. Alizadeh, Y. H. Temucin, A. Sojoodi, A. Afsahi: Efficient process arrival pattern
//          aware collective communication for deep learning. EuroMPI/USA 2022, algorithm 2; here
//          without a lock, in blocks, and a rank leaves as soon as it has shown its sum, whichever
//          ranks are still to come. doi 10.1145/3555819.3555857
// Needs    ranks of one node, a commutative op. Any p >= 1, any root, any n >= 0.
// Cost     p signals one after the other, and B - 1 more; per rank n copied in or n gamma, and n
//          copied out by the root unless it comes last. When the last rank has come, one sum and
//          at most one copy are left.
// Scratch  n
// When     on one node, where ranks come at different times.
// Order    order of arrival: others in the next run.
//
// p = 3, one block; they come in the order 1, 2, 0, and the root is 2. A digit is a contribution, *
// is final.
//              rank 1            rank 2            rank 0
//              buffer  stage     buffer  stage     buffer  stage
//   start      A1                A2                A0
//   show       A1      A1        A2                A0      (late)
//   add        (gone)            A2      A12       A0
//   complete                     A2      A12       A0      A*
//   copy out                     A*                (gone)
#include "coll/arrival_chain.hpp"
#include "ir/algorithm.hpp"

namespace paceline {
namespace {

void build(const Problem& pb, const Knobs& knobs, Builder& b) {
  const int blocks = blocks_of(knobs);
  const ArrivalChain chain(b, blocks);
  if (pb.rank < chain.last()) {
    chain.pass_on();
    if (pb.rank == pb.root) chain.copy_out();
    return;
  }
  for (int turn = 0; turn < blocks; ++turn) {
    const int block = block_at(turn, blocks);
    if (pb.rank == pb.root) {
      chain.complete(block, b.output(block));
    } else {
      chain.complete(block, chain.shown(block));
      b.signal(pb.root);
    }
  }
}

Cost cost(const Problem& pb, const Knobs& knobs) {
  if (pb.ranks == 1) return {};
  const int blocks = blocks_of(knobs), passes = pb.root != pb.ranks - 1;
  return {.rounds = pb.ranks + blocks - 2.0 + passes, .reduced = (pb.ranks - 2.0) / blocks + 1,
          .copied = 1.0 + passes};
}

}  // namespace

extern const Algorithm reduce_arrival_chain{
    .collective = Collective::reduce, .name = "arrival_chain", .cuts = cuts_of_blocks,
    .build = build, .cost = cost, .takes = kTakesBlocks, .access = Access::staging,
    .arrivals = Arrivals::claimed};

}  // namespace paceline
