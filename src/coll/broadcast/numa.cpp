// NUMA-aware broadcast: the root's group copies from it; each other group reads every block once,
// every rank a slice of it, and puts it together by itself.
//
// Source   elementary: the staged broadcast, with a scatter and an allgather in every other group.
// Needs    ranks of one node. Any p >= 1, any root, any n >= 0, any groups of equal size.
// Cost     B + 1 rounds of signals; n copied in by the root, n out by each peer; into each of the
//          other groups n, 1/g of it by each of its g ranks, which show it to the others.
// Scratch  2 n / B
// When     long messages on a node whose ranks do not share one cache.
// Order    no arithmetic.
//
// p = 4 in groups 01 and 23, root 0, one block, slices A B.
//              rank 0    rank 1    rank 2    rank 3
//   show       A B
//   root tells all
//   read                 A B       A           B
//   2 and 3 tell each other and the root
//   copy                             B       A
#include "coll/grouped.hpp"
#include "ir/algorithm.hpp"

namespace paceline {
namespace {

int cuts(const Problem& pb, const Knobs& knobs) {
  return Groups(pb.ranks, pb.groups).size() * blocks_of(knobs);
}

// Of a rank outside the root's group. What it shows lies where the root has shown it.
void read_slices(Builder& b, const Team& team, const Segment& block, const Segment& slot) {
  const int root = b.problem().root;
  const auto slice = [&](int index) { return b.output(block.first + index); };
  const auto staged = [&](int index) { return b.part(slot, block.first + index, 1); };
  b.copy(b.of_peer(root, staged(team.index())), slice(team.index()));
  b.copy(slice(team.index()), staged(team.index()));
  b.signal(root);
  team.signal_mates(b);
  team.wait_for_mates(b);
  for (int index : team.other_indices())
    b.copy(b.of_peer(team.mate(index), staged(index)), slice(index));
}

// Of the root: they have taken the block before last. Who reads slices says so for each block,
// since others of its group wait for that; mates do only where the slot is to be written again.
void wait_for_readers(Builder& b, const Team& team, bool for_mates) {
  for (int rank = 0; rank < b.problem().ranks; ++rank)
    if (rank != b.problem().rank && (for_mates || !team.is_mate(rank))) b.wait(rank);
}

void build(const Problem& pb, const Knobs& knobs, Builder& b) {
  const Team team(pb);
  const int slices = team.size(), blocks = pb.ranks > 1 ? blocks_of(knobs) : 0;
  const Turns shown(b, b.output(0, slices), blocks);
  for (int turn = 0; turn < blocks + 2; ++turn) {
    const bool is_root = pb.rank == pb.root;
    if (is_root && turn >= 2 && turn - 2 < blocks) wait_for_readers(b, team, turn < blocks);
    if (turn >= blocks) continue;
    const Segment block = b.output(turn * slices, slices), slot = shown.slot(turn, block);
    if (is_root) {
      b.copy(block, slot);
      signal_others(b);
      continue;
    }
    b.wait(pb.root);
    if (!team.is_mate(pb.root)) {
      read_slices(b, team, block, slot);
      continue;
    }
    b.copy(b.of_peer(pb.root, slot), block);
    if (turn + 2 < blocks) b.signal(pb.root);
  }
}

Cost cost(const Problem& pb, const Knobs& knobs) {
  const int back = Groups(pb.ranks, pb.groups).count() > 1 ? 1 : 0;   // who reads slices says so
  return {
      .rounds = pb.ranks > 1 ? double(blocks_of(knobs) + back) : 0.0, .volume = 0, .reduced = 0};
}

}  // namespace

extern const Algorithm broadcast_numa{
    .collective = Collective::broadcast, .name = "numa", .cuts = cuts, .build = build, .cost = cost,
    .takes = {.blocks = true}, .access = Access::staging, .grouped = true};

}  // namespace paceline
