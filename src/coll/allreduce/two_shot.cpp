// Two-shot allreduce: ranks of a node show each other their vectors, and each sums one slice.
//
// Source   J. Peng, J. Fang, J. Liu, M. Xie, Y. Dai, B. Yang, S. Li, Z. Wang: Optimizing MPI
//          collectives on shared memory multi-cores. SC 2023; here block by block through two slots
//          in turn, with one meeting a block.
// Needs    ranks of one node. Any p >= 1, any n >= 0; operands stay in rank order.
// Cost     B + 1 meetings; per rank (p-1)/p n copied in, (p-1)/p n gamma, n/p shown, (p-1)/p n
//          copied out. The stage stays in the cache: of the memory of all ranks together p n are
//          read and p n written.
// Scratch  2 (1 + 1/p) n / B, of two ranks n / B
// When     from medium messages on, on one node; B so that the stage stays in the cache.
// Order    rank order from left to right: same bits on every rank and in every run.
//
// p = 2, one block, slices A B; a digit is a contribution, * is final. Each of two ranks stores its
// sum where the other has shown the operand, which it has at hand; of more ranks, in its own stage.
//              rank 0              rank 1
//              buffer    stage     buffer    stage
//   start      A0 B0               A1 B1
//   show       A0 B0     B0        A1 B1     A1
//   meet
//   sum        A* B0     B*        A1 B*     A*
//   meet
//   copy out   A* B*               A* B*
#include "coll/staged.hpp"
#include "ir/algorithm.hpp"

namespace paceline {
namespace {

int cuts(const Problem& pb, const Knobs& knobs) { return pb.ranks * blocks_of(knobs); }

// Handles one block in its turn: its slices are blocks [first, first + p).
class Block {
 public:
  Block(Builder& b, const Turns& shown, const Turns& sums, int turn, int blocks)
      : b_(b),
        p_(b.problem().ranks),
        r_(b.problem().rank),
        first_(block_at(turn, blocks) * p_),
        shown_(shown.slot(turn, p_ == 2 ? b.output(first_) : b.output(first_, p_))),
        sums_(sums),
        turn_(turn) {}

  // Shows the own slice as well beyond kSourcesAtOnce ranks: the sum would overwrite it in place.
  void show() const {
    const bool all = p_ > kSourcesAtOnce;
    show(0, all ? p_ : r_);
    if (!all) show(r_ + 1, p_ - r_ - 1);
  }
  void sum_own() const {
    const Segment staged = shown(r_, 1), target = b_.output(first_ + r_);
    const Segment mine = p_ > kSourcesAtOnce ? staged : b_.input(first_ + r_);
    sum(b_, of_everybody(b_, staged, mine), target);
    b_.finish(target);
    if (p_ == 2) b_.copy(target, b_.of_peer(1 - r_, staged));   // back where it was shown
    else if (p_ > 1) b_.copy(target, sums_.slot(turn_, target));
  }
  void copy_out() const {
    if (p_ == 2) return b_.copy(shown(1 - r_, 1), b_.output(first_ + 1 - r_));
    for (int k = 1; k < p_; ++k) {
      const int from = (r_ + k) % p_;
      const Segment slice = b_.output(first_ + from);
      b_.copy(b_.of_peer(from, sums_.slot(turn_, slice)), slice);
    }
  }

 private:
  void show(int slice, int slices) const {
    if (slices > 0) b_.copy(b_.input(first_ + slice, slices), shown(slice, slices));
  }
  // Each of two ranks shows only the other's slice, so both use one place
  // (engine/shm/shm_channel.hpp).
  Segment shown(int slice, int slices) const {
    const Segment wanted = b_.output(first_ + slice, slices);
    return p_ == 2 ? Builder::as(shown_, wanted) : b_.part(shown_, wanted.first, slices);
  }

  Builder& b_;
  int p_, r_, first_;
  Segment shown_;
  const Turns& sums_;
  int turn_;
};

void build(const Problem& pb, const Knobs& knobs, Builder& b) {
  const int blocks = blocks_of(knobs);
  const Segment whole = pb.ranks == 2 ? b.output(0) : b.output(0, pb.ranks);
  const Turns shown(b, whole, blocks), sums(b, b.output(0), pb.ranks == 2 ? 0 : blocks);
  for (int turn = 0; turn <= blocks; ++turn) {
    if (turn < blocks) Block(b, shown, sums, turn, blocks).show();
    meet(b);
    if (turn > 0) Block(b, shown, sums, turn - 1, blocks).copy_out();
    if (turn < blocks) Block(b, shown, sums, turn, blocks).sum_own();
  }
}

Cost cost(const Problem& pb, const Knobs& knobs) {
  Cost cost = cost_of_slices(pb, knobs);
  if (pb.ranks > 1) cost.copied += 1.0 / pb.ranks;   // its own slice, which it shows
  return cost;
}

}  // namespace

extern const Algorithm allreduce_two_shot{
    .collective = Collective::allreduce, .name = "two_shot", .cuts = cuts, .build = build,
    .cost = cost, .takes = kTakesBlocks, .access = Access::staging,
    .bits = Bits::by_rank};

}  // namespace paceline
