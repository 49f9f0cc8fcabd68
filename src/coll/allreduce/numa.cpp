// NUMA-aware allreduce: sums inside groups of ranks first, so that a byte crosses between them
// once.
//
// Source   J. Peng, J. Fang, J. Liu, M. Xie, Y. Dai, B. Yang, S. Li, Z. Wang: Optimizing MPI
//          collectives on shared memory multi-cores. SC 2023; here with a sum in each group, then
//          one across k groups of g = p/k ranks, block by block.
// Needs    ranks of one node. Any p >= 1, any n >= 0, any groups of equal size; operands that must
//          stay in rank order need groups of neighbours.
// Cost     B + 3 meetings, of g + k - 2 others; per rank (g-1)/g n copied in, ((g-1)/g + (k-1)/p) n
//          gamma. Into each group come 2 (k-1)/k n: (k-1)/k n to be summed, as much that is summed.
// Scratch  (2 + 5/g) n / B
// When     long messages on a node whose ranks do not share one cache.
// Order    rank order inside a group, then the groups in the order of their first ranks: same bits
//          on every rank and in every run for the same groups; other bits for others.
//
// p = 4 in groups 01 and 23, one block, slices A B, each in two pieces a A, b B; a digit is a
// contribution, * is final. Only ranks 0 and 2 are shown, and what they write.
//                 rank 0 (with 1)           rank 2 (with 3)
//                 buffer      stage         buffer      stage
//   show          a0A0 b0B0   b0B0          a2A2 b2B2   b2B2
//   meet
//   sum in group              a01A01                    a23A23
//   meet
//   sum across    a*          a*               A*          A*
//   meet
//   fetch           A*          A*          a*          a*
//   meet
//   copy out           b*B*                      b*B*
#include "coll/grouped.hpp"
#include "ir/algorithm.hpp"

namespace paceline {
namespace {

int cuts(const Problem& pb, const Knobs& knobs) { return pb.ranks * blocks_of(knobs); }

// Slice i of a block is summed by the ranks with index i; piece j of it across, by group j.
class Grouped {
 public:
  Grouped(Builder& b, int blocks)
      : b_(b),
        team_(b.problem()),
        pieces_(team_.groups()),
        blocks_(blocks),
        shown_(b, b.output(0, b.problem().ranks), blocks),
        partial_(b, b.output(0, pieces_), blocks),
        sums_(b, b.output(0, pieces_), blocks, 3) {}   // read across first, then in the group

  void show(int turn) const {
    const int all = b_.problem().ranks, own = team_.index() * pieces_;
    show(turn, 0, own);
    show(turn, own + pieces_, all - own - pieces_);
  }
  void sum_in_group(int turn) const {
    const int own = first(turn, team_.index());
    const Segment slot = b_.part(shown(turn), own, pieces_);
    sum(b_, team_.of_mates(b_, slot, b_.input(own, pieces_)), partial_.slot(turn, slice(turn)));
  }
  void sum_across(int turn) const {
    const int piece = first(turn, team_.index()) + team_.group();
    const Segment slot = b_.part(partial_.slot(turn, slice(turn)), piece, 1);
    const Segment target = b_.output(piece);
    sum(b_, team_.of_twins(b_, slot, slot), target);
    b_.finish(target);
    if (b_.problem().ranks > 1) b_.copy(target, sum_of(turn, piece));
  }
  void fetch(int turn) const {
    for (int group : team_.other_groups()) {
      const int piece = first(turn, team_.index()) + group;
      const Segment target = b_.output(piece), slot = sum_of(turn, piece);
      b_.copy(b_.of_peer(team_.twin(group), slot), target);
      b_.copy(target, slot);
    }
  }
  void copy_out(int turn) const {
    for (int index : team_.other_indices()) {
      const Segment slice = b_.output(first(turn, index), pieces_);
      b_.copy(b_.of_peer(team_.mate(index), sums_.slot(turn, slice)), slice);
    }
  }
  void run() const {
    in_phases(b_, team_, blocks_, 5, [&](int phase, int block) {
      if (phase == 0) show(block);
      if (phase == 1) sum_in_group(block);
      if (phase == 2) sum_across(block);
      if (phase == 3) fetch(block);
      if (phase == 4) copy_out(block);
    });
  }

 private:
  int first(int turn, int index) const { return turn * b_.problem().ranks + index * pieces_; }
  Segment slice(int turn) const { return b_.output(first(turn, team_.index()), pieces_); }
  Segment shown(int turn) const {
    return shown_.slot(turn, b_.output(first(turn, 0), b_.problem().ranks));
  }
  Segment sum_of(int turn, int piece) const {
    return b_.part(sums_.slot(turn, slice(turn)), piece, 1);
  }
  void show(int turn, int from, int pieces) const {
    const int at = first(turn, 0) + from;
    if (pieces > 0) b_.copy(b_.input(at, pieces), b_.part(shown(turn), at, pieces));
  }

  Builder& b_;
  Team team_;
  int pieces_;   // of a slice: one for each group
  int blocks_;
  Turns shown_, partial_, sums_;
};

void build(const Problem&, const Knobs& knobs, Builder& b) { Grouped(b, blocks_of(knobs)).run(); }

Cost cost(const Problem& pb, const Knobs& knobs) {
  const Groups groups(pb.ranks, pb.groups);
  const double in_group = double(groups.size() - 1) / groups.size();
  const double across = double(groups.count() - 1) / pb.ranks;
  return {.rounds = pb.ranks > 1 ? blocks_of(knobs) + 3.0 : 0.0,
          .volume = 0,
          .reduced = in_group + across};
}

}  // namespace

extern const Algorithm allreduce_numa{
    .collective = Collective::allreduce, .name = "numa", .rejects = rejects_scattered, .cuts = cuts,
    .build = build, .cost = cost, .takes = {.blocks = true}, .access = Access::staging,
    .grouped = true};

}  // namespace paceline
