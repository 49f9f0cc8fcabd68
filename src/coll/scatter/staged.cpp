// Staged scatter: the root shows every rank its unit, block by block, and each copies its own out.
//
// Source   elementary: the gather of the same name, turned around.
// Needs    ranks of one node. Any p >= 1, any root, any n >= 0.
// Cost     B signals from the root to each peer, B - 4 back; n copied in by the root, n/p copied
//          out by each peer, at the same time but for one block. n the whole message.
// Scratch  (p-1) min(B, 4) n / (p B)
// When     on one node.
// Order    no arithmetic.
//
// p = 2, blocks A B C of rank 1's unit, root 0; slots x y, where there were two.
//   rank 0     A -> x     B -> y    wait   C -> x
//   rank 1                x -> A    tell   y -> B     x -> C
#include "coll/staged.hpp"
#include "ir/algorithm.hpp"

namespace paceline {
namespace {

int cuts(const Problem&, const Knobs& knobs) { return blocks_of(knobs); }

void build(const Problem& pb, const Knobs& knobs, Builder& b) {
  const int p = pb.ranks, blocks = blocks_of(knobs), slots = std::min(blocks, kAhead);
  std::vector<Segment> shown;   // turn after turn, to the rank that many places after the root
  for (int i = 0; i < slots * (p - 1); ++i) shown.push_back(b.shared_scratch(b.input(0)));
  const auto slot = [&](int turn, int to, const Segment& shape) {
    const int at = turn % slots * (p - 1) + (to - pb.root + p) % p - 1;
    return Builder::as(shown[std::size_t(at)], shape);
  };
  for (int turn = 0; turn < blocks; ++turn) {
    const auto block = [&](int unit) { return unit * blocks + block_at(turn, blocks); };
    const Segment own = b.input(block(pb.rank)), mine = b.output(block(pb.rank));
    if (pb.rank != pb.root) {
      b.wait(pb.root);
      b.copy(b.of_peer(pb.root, slot(turn, pb.rank, own)), mine);
      if (turn + kAhead < blocks) b.signal(pb.root);
      continue;
    }
    if (turn >= kAhead) wait_for_others(b);   // they have taken what is in the slots
    for (int k = 1; k < p; ++k) {
      const int to = (pb.root + k) % p;
      const Segment unit = b.input(block(to));
      b.copy(unit, slot(turn, to, unit));
    }
    signal_others(b);
    b.copy(own, mine);
  }
}

Cost cost(const Problem& pb, const Knobs& knobs) {
  if (pb.ranks == 1) return {};
  return {.rounds = double(blocks_of(knobs)), .copied = 1};
}

}  // namespace

extern const Algorithm scatter_staged{
    .collective = Collective::scatter, .name = "staged", .cuts = cuts, .build = build,
    .cost = cost, .takes = {.blocks = true}, .access = Access::staging};

}  // namespace paceline
