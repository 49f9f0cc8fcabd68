// Grouped reduce_scatter: in each group every rank sums what is for itself and for its twins in the
// other groups; then it sums its own unit across.
//
// Source   elementary: the first half of the grouped allreduce.
// Needs    ranks of one node. Any p >= 1, any n >= 0, any groups of equal size; operands that must
//          stay in rank order need groups of neighbours.
// Cost     B + 1 meetings, of g + k - 2 others, for k groups of g = p/k ranks; per rank (g-1)/g n
//          copied in, ((g-1)/g + (k-1)/p) n gamma. Into each group come (k-1)/k n.
// Scratch  (2 + 2/g) n / B
// When     long messages on a node whose ranks do not share one cache.
// Order    rank order inside a group, then the groups in the order of their first ranks: same bits
//          in every run for the same groups; other bits for others.
//
// p = 4 in groups 01 and 23, one block, units A B C D; a digit is a contribution, * is final. Only
// ranks 0 and 2 are shown.
//                 rank 0 (with 1)               rank 2 (with 3)
//                 buffer        stage           buffer        stage
//   show          A0 B0 C0 D0   B0 D0           A2 B2 C2 D2   B2 D2
//   meet
//   sum in group                A01 C01                       A23 C23
//   meet
//   sum across    A*                            C*
#include "coll/grouped.hpp"
#include "ir/algorithm.hpp"

namespace paceline {
namespace {

int cuts(const Problem&, const Knobs& knobs) { return blocks_of(knobs); }

class Grouped {
 public:
  Grouped(Builder& b, int blocks) : b_(b), team_(b.problem()), blocks_(blocks) {
    for (int unit = 0; unit < b.problem().ranks; ++unit)
      shown_.emplace_back(b, block(unit, 0), blocks);
    for (int group = 0; group < team_.groups(); ++group)
      sums_.emplace_back(b, block(0, 0), blocks);
  }

  void show(int turn) const {
    for (int index : team_.other_indices())
      for (int group = 0; group < team_.groups(); ++group) {
        const int unit = team_.rank_of(group, index);
        b_.copy(block(unit, turn), shown(unit, turn));
      }
  }
  void sum_in_group(int turn) const {
    for (int group = 0; group < team_.groups(); ++group) {
      const int unit = team_.twin(group);
      sum(b_, team_.of_mates(b_, shown(unit, turn), block(unit, turn)), sum_for(group, turn));
    }
  }
  void sum_across(int turn) const {
    const Segment slot = sum_for(team_.group(), turn);
    const Segment target = b_.output(b_.problem().rank * blocks_ + turn);
    sum(b_, team_.of_twins(b_, slot, slot), target);
    b_.finish(target);
  }
  void run() const {
    in_phases(b_, team_, blocks_, 3, [&](int phase, int block) {
      if (phase == 0) show(block);
      if (phase == 1) sum_in_group(block);
      if (phase == 2) sum_across(block);
    });
  }

 private:
  Segment block(int unit, int turn) const { return b_.input(unit * blocks_ + turn); }
  Segment shown(int unit, int turn) const {
    return shown_[static_cast<std::size_t>(unit)].slot(turn, block(unit, turn));
  }
  // Of the own group, for the twin in that one.
  Segment sum_for(int group, int turn) const {
    return sums_[static_cast<std::size_t>(group)].slot(turn, block(team_.twin(group), turn));
  }

  Builder& b_;
  Team team_;
  int blocks_;
  std::vector<Turns> shown_, sums_;   // for each unit, for each group
};

void build(const Problem&, const Knobs& knobs, Builder& b) { Grouped(b, blocks_of(knobs)).run(); }

Cost cost(const Problem& pb, const Knobs& knobs) {
  const Groups groups(pb.ranks, pb.groups);
  const double in_group = double(groups.size() - 1) / groups.size();
  const double across = double(groups.count() - 1) / pb.ranks;
  return {.rounds = pb.ranks > 1 ? blocks_of(knobs) + 1.0 : 0.0,
          .volume = 0,
          .reduced = in_group + across};
}

}  // namespace

extern const Algorithm reduce_scatter_numa{
    .collective = Collective::reduce_scatter, .name = "numa", .rejects = rejects_scattered,
    .cuts = cuts, .build = build, .cost = cost, .takes = {.blocks = true},
    .access = Access::staging, .grouped = true};

}  // namespace paceline
