// Arrival chain allreduce: ranks add their vectors one after the other, as they come.
//
// Source   P. Alizadeh, Y. H. Temucin, A. Sojoodi, A. Afsahi: Efficient process arrival pattern
//          aware collective communication for deep learning. EuroMPI/USA 2022, algorithm 2, and a
//          broadcast through shared memory; here without a lock, in blocks, and an early rank waits
//          for no later one before it has shown its sum. doi 10.1145/3555819.3555857
// Needs    ranks of one node, a commutative op. Any p >= 1, any n >= 0.
// Cost     p signals one after the other, and B - 1 more; per rank n copied in or n gamma, and n
//          copied out. When the last rank has come, one sum and the copies out are left.
// Scratch  n
// When     medium and long messages on one node, where ranks come at different times.
// Order    order of arrival: same bits on every rank, and others in the next run.
//
// p = 3, one block; they come in the order 1, 2, 0. A digit is a contribution, * is final.
//              rank 1            rank 2            rank 0
//              buffer  stage     buffer  stage     buffer  stage
//   start      A1                A2                A0
//   show       A1      A1        A2                A0      (late)
//   add        A1      A1        A2      A12       A0
//   complete   A1      A1        A2      A12       A*      A*
//   copy out   A*      A1        A*      A12       A*      A*
#include "coll/arrival_chain.hpp"
#include "ir/algorithm.hpp"

namespace paceline {
namespace {

void build(const Problem& pb, const Knobs& knobs, Builder& b) {
  const int blocks = blocks_of(knobs);
  const ArrivalChain chain(b, blocks);
  if (pb.rank < chain.last()) {
    chain.pass_on();
    return chain.copy_out();
  }
  for (int turn = 0; turn < blocks; ++turn) {
    const int block = block_at(turn, blocks);
    chain.complete(block, b.output(block));
    if (pb.ranks == 1) continue;
    b.copy(b.output(block), chain.shown(block));
    signal_others(b);
  }
}

Cost cost(const Problem& pb, const Knobs& knobs) {
  if (pb.ranks == 1) return {};
  const int blocks = blocks_of(knobs);
  return {.rounds = pb.ranks + blocks - 1.0, .reduced = (pb.ranks - 2.0) / blocks + 1,
          .copied = blocks > 1 ? 2.0 : 3.0};
}

}  // namespace

extern const Algorithm allreduce_arrival_chain{
    .collective = Collective::allreduce, .name = "arrival_chain", .cuts = cuts_of_blocks,
    .build = build, .cost = cost, .takes = kTakesBlocks, .access = Access::staging,
    .arrivals = Arrivals::claimed};

}  // namespace paceline
