// NUMA-aware reduce: sums inside groups of ranks first; the root's group sums what the others have,
// and the root collects it.
//
// Source   elementary: the allreduce of the same name, for one group.
// Needs    ranks of one node. Any p >= 1, any root, any n >= 0, any groups of equal size, up to 16
//          of them; operands that must stay in rank order need groups of neighbours.
// Cost     B + 2 meetings, of g + k - 2 others, for k groups of g = p/k ranks; per rank (g-1)/g n
//          copied in and (g-1)/g n gamma, in the root's group (k-1)/g n gamma more; the root copies
//          (g-1)/g n out. Into the root's group come (k-1) n, into the others nothing.
// Scratch  (2 + 3/g) n / B
// When     long messages on a node whose ranks do not share one cache.
// Order    rank order inside a group, then the groups in the order of their first ranks: same bits
//          in every run for the same groups; other bits for others.
//
// p = 4 in groups 01 and 23, root 0, one block, slices A B; a digit is a contribution, * is final.
//                 rank 0           rank 1           rank 2           rank 3
//                 buffer   stage   buffer   stage   buffer   stage   buffer   stage
//   show          A0 B0    B0      A1 B1    A1      A2 B2    B2      A3 B3    A3
//   meet
//   sum in group           A01              B01              A23              B23
//   meet
//   sum across    A*                        B*
//   meet
//   collect       A* B*
#include "base/str.hpp"
#include "coll/grouped.hpp"
#include "ir/algorithm.hpp"

namespace paceline {
namespace {

int cuts(const Problem& pb, const Knobs& knobs) {
  return Groups(pb.ranks, pb.groups).size() * blocks_of(knobs);
}

// The sum across takes the place of one of its operands.
std::optional<Reason> rejects(const Problem& pb) {
  if (Groups(pb.ranks, pb.groups).count() > kSourcesAtOnce)
    return Reason{str("a rank sums at most ", kSourcesAtOnce, " groups at once"), "binomial"};
  return rejects_scattered(pb);
}

class Grouped {
 public:
  Grouped(Builder& b, int blocks)
      : b_(b),
        team_(b.problem()),
        blocks_(blocks),
        shown_(b, b.output(0, team_.size()), blocks),
        sums_(b, b.output(0), blocks, 3) {}   // of the group, then of all, then collected

  void show(int turn) const {
    show(turn, 0, team_.index());
    show(turn, team_.index() + 1, team_.size() - team_.index() - 1);
  }
  void sum_in_group(int turn) const {
    const Segment slot = b_.part(shown(turn), own(turn), 1);
    sum(b_, team_.of_mates(b_, slot, b_.input(own(turn))), sum_of(turn, own(turn)));
  }
  void sum_across(int turn) const {
    if (!team_.is_mate(b_.problem().root)) return;
    const Segment slot = sum_of(turn, own(turn)), target = is_root() ? b_.output(own(turn)) : slot;
    if (team_.groups() > 1) b_.reduce(team_.of_twins(b_, slot, slot), target);
    else b_.copy(slot, target);
    b_.finish(target);
  }
  void collect(int turn) const {
    if (!is_root()) return;
    for (int index : team_.other_indices()) {
      const int slice = turn * team_.size() + index;
      b_.copy(b_.of_peer(team_.mate(index), sum_of(turn, slice)), b_.output(slice));
    }
  }
  void run() const {
    in_phases(b_, team_, blocks_, 4, [&](int phase, int block) {
      if (phase == 0) show(block);
      if (phase == 1) sum_in_group(block);
      if (phase == 2) sum_across(block);
      if (phase == 3) collect(block);
    });
  }

 private:
  bool is_root() const { return b_.problem().rank == b_.problem().root; }
  int own(int turn) const { return turn * team_.size() + team_.index(); }   // slice
  Segment shown(int turn) const {
    return shown_.slot(turn, b_.output(turn * team_.size(), team_.size()));
  }
  Segment sum_of(int turn, int slice) const { return sums_.slot(turn, b_.output(slice)); }
  void show(int turn, int from, int slices) const {
    const int at = turn * team_.size() + from;
    if (slices > 0) b_.copy(b_.input(at, slices), b_.part(shown(turn), at, slices));
  }

  Builder& b_;
  Team team_;
  int blocks_;
  Turns shown_, sums_;
};

void build(const Problem&, const Knobs& knobs, Builder& b) { Grouped(b, blocks_of(knobs)).run(); }

Cost cost(const Problem& pb, const Knobs& knobs) {
  const Groups groups(pb.ranks, pb.groups);
  return {.rounds = pb.ranks > 1 ? blocks_of(knobs) + 2.0 : 0.0,
          .volume = 0,
          .reduced = double(groups.size() - 1 + groups.count() - 1) / groups.size()};
}

}  // namespace

extern const Algorithm reduce_numa{
    .collective = Collective::reduce, .name = "numa", .rejects = rejects, .cuts = cuts,
    .build = build, .cost = cost, .takes = {.blocks = true}, .access = Access::staging,
    .grouped = true};

}  // namespace paceline
