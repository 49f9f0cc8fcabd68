// Arrival two-shot allreduce: all but the last to come each sum one slice of what they have, and
// add the last one's when it is there.
//
// Source   ours (docs/design/0044-arrival-in-the-node.md): two_shot by those who do not come last,
//          so that all of them add before and after the last one comes.
// Needs    ranks of one node, a commutative op. Any p >= 1, any n >= 0.
// Cost     2 signals one after the other; per rank that does not come last (p-2)/(p-1) n copied in,
//          n gamma, n/(p-1) shown, (p-2)/(p-1) n copied out; by the last one n copied in and n out.
//          When it has come, its copy in, one sum of n/(p-1) by each of the others and the copies
//          out are left.
// Scratch  n
// When     medium and long messages on one node with a core for each rank, where ranks come at
//          different times.
// Order    order of arrival, the last one last: same bits on every rank, and others in the next
//          run.
//
// p = 3, slices A B; they come in the order 1, 2, 0. A digit is a contribution, * is final.
//              rank 1              rank 2              rank 0
//              buffer    stage     buffer    stage     buffer    stage
//   start      A1 B1               A2 B2               A0 B0
//   show       A1 B1     B1        A2 B2     A2        A0 B0     (late)
//   add        A1 B1     A12 B1    A2 B2     A2 B12    A0 B0
//   show late  A1 B1     A12 B1    A2 B2     A2 B12    A0 B0     A0 B0
//   complete   A* B1     A*  B1    A2 B*     A2 B*     A0 B0     A0 B0
//   copy out   A* B*     A*  B1    A* B*     A2 B*     A* B*     A0 B0
#include "coll/staged.hpp"
#include "ir/algorithm.hpp"

namespace paceline {
namespace {

// One slice for each position but the last; of its own each is the owner.
int cuts(const Problem& pb, const Knobs&) { return std::max(pb.ranks - 1, 1); }

class Slices {
 public:
  explicit Slices(Builder& b)
      : b_(b), owners_(b.problem().ranks - 1), k_(b.problem().rank),
        shown_(b.scratch(b.output(0, owners_))) {}

  void own() const {
    add_early();
    b_.wait(owners_);
    const Segment mine = owners_ > 1 ? shown(k_) : b_.input(k_), target = b_.output(k_);
    b_.reduce({mine, b_.of_peer(owners_, shown(k_))}, target);
    b_.finish(target);
    b_.copy(target, shown(k_));
    signal_others(b_);
    copy_out();
  }
  void come_last() const {
    b_.copy(b_.input(0, owners_), shown_);
    signal_others(b_);
    if (owners_ > 1) wait_for_others(b_);   // what they showed each other
    copy_out();
  }

 private:
  Segment shown(int slice) const { return b_.part(shown_, slice, 1); }
  void show(int slice, int slices) const {
    if (slices > 0) b_.copy(b_.input(slice, slices), b_.part(shown_, slice, slices));
  }
  // Of the positions before the last one.
  void add_early() const {
    if (owners_ == 1) return;
    show(0, k_);
    show(k_ + 1, owners_ - k_ - 1);
    signal_others(b_);
    std::vector<Segment> sources;
    for (int position = 0; position < owners_; ++position) {
      if (position != k_) b_.wait(position);
      sources.push_back(position == k_ ? b_.input(k_) : b_.of_peer(position, shown(k_)));
    }
    sum(b_, sources, shown(k_));
  }
  void copy_out() const {
    for (int turn = 1; turn <= owners_; ++turn) {
      const int owner = (k_ + turn) % (owners_ + 1);
      if (owner == owners_) continue;
      b_.wait(owner);
      b_.copy(b_.of_peer(owner, shown(owner)), b_.output(owner));
    }
  }

  Builder& b_;
  int owners_, k_;
  Segment shown_;
};

void build(const Problem& pb, const Knobs&, Builder& b) {
  if (pb.ranks == 1) {
    b.copy(b.input(), b.output());
    return b.finish(b.output());
  }
  const Slices slices(b);
  if (pb.rank == pb.ranks - 1) slices.come_last();
  else slices.own();
}

Cost cost(const Problem& pb, const Knobs&) {
  return {.rounds = pb.ranks > 1 ? 2.0 : 0.0,
          .volume = 0,
          .reduced = pb.ranks > 1 ? 1.0 : 0.0};
}

}  // namespace

extern const Algorithm allreduce_arrival_sliced{
    .collective = Collective::allreduce, .name = "arrival_sliced", .cuts = cuts, .build = build,
    .cost = cost, .access = Access::staging, .claimed = true, .follows_arrival = true};

}  // namespace paceline
