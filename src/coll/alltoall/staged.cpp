// Staged alltoall: every rank shows its pieces, block by block, and takes what is meant for it.
//
// Source   elementary: two copies through shared memory, here by two slots in turn.
// Needs    ranks of one node. Any p >= 1, any n >= 0, also in place.
// Cost     B meetings; per rank (p-1)/p n copied in and as much out.
// Scratch  2 (p-1)/p n / B
// When     on one node.
// Order    no arithmetic.
//
// p = 2, one block; ab is what rank a sends to rank b.
//              rank 0              rank 1
//              buffer    stage     buffer    stage
//   start      00 01               10 11
//   show       00 01     01        10 11     10
//   meet
//   copy out   00 10               01 11
#include "coll/staged.hpp"
#include "ir/algorithm.hpp"

namespace paceline {
namespace {

int cuts(const Problem&, const Knobs& knobs) { return blocks_of(knobs); }

void build(const Problem& pb, const Knobs& knobs, Builder& b) {
  const int p = pb.ranks, r = pb.rank, blocks = blocks_of(knobs);
  const Directed shown(b, b.output(0), blocks);
  for (int turn = 0; turn < blocks; ++turn) {
    const auto at = [&](int unit) { return unit * blocks + block_at(turn, blocks); };
    // Shaped as its owner knows the unit, which it has or gets.
    const auto slot = [&](int from, int to) {
      const bool is_senders = shown.owner(from, to, turn) == from;
      return shown.at(from, to, turn, is_senders ? b.input(at(to)) : b.output(at(from)));
    };
    for (int k = 1; k < p; ++k) {
      const int to = (r + k) % p;
      b.copy(b.input(at(to)), slot(r, to));
    }
    signal_others(b);
    b.copy(b.input(at(r)), b.output(at(r)));   // rather than wait
    wait_for_others(b);
    for (int k = 1; k < p; ++k) {
      const int from = (r + k) % p;
      b.copy(slot(from, r), b.output(at(from)));
    }
  }
}

Cost cost(const Problem& pb, const Knobs& knobs) {
  if (pb.ranks == 1) return {};
  return {.rounds = double(blocks_of(knobs)), .copied = 2 - 1.0 / pb.ranks};
}

}  // namespace

extern const Algorithm alltoall_staged{
    .collective = Collective::alltoall, .name = "staged", .cuts = cuts, .build = build,
    .cost = cost, .takes = {.blocks = true}, .access = Access::staging};

}  // namespace paceline
