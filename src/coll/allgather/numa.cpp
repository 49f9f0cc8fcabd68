// NUMA-aware allgather: a rank copies the units of its group from their owners, reads one of each
// other group, and shows that to its group.
//
// Source   elementary: an allgather across groups, and one inside each.
// Needs    ranks of one node. Any p >= 1, any n >= 0, any groups of equal size.
// Cost     B + 1 meetings, of g + k - 2 others, for k groups of g = p/k ranks; per rank n/g copied
//          in, n copied out. Into each group come (k-1)/k n.
// Scratch  2 n / (g B)
// When     long messages on a node whose ranks do not share one cache.
// Order    no arithmetic.
//
// p = 4 in groups 01 and 23, one block, units A B C D. Only ranks 0 and 2 are shown.
//              rank 0 (with 1)       rank 2 (with 3)
//              buffer      stage     buffer      stage
//   start      A                         C
//   show       A           A             C       C
//   meet
//   read       A B C       C         A   C D     A
//   meet
//   copy out   A B C D               A B C D
#include "coll/grouped.hpp"
#include "ir/algorithm.hpp"

namespace paceline {
namespace {

int cuts(const Problem&, const Knobs& knobs) { return blocks_of(knobs); }

class Grouped {
 public:
  Grouped(Builder& b, int blocks)
      : b_(b), team_(b.problem()), blocks_(blocks), shown_(b, block(0, 0), blocks) {
    for (int k = 1; k < team_.groups(); ++k) passed_on_.emplace_back(b, block(0, 0), blocks);
  }

  void show(int turn) const {
    const Segment mine = b_.input(b_.problem().rank * blocks_ + turn);
    b_.copy(mine, block(b_.problem().rank, turn));
    if (b_.problem().ranks > 1) b_.copy(mine, shown(b_.problem().rank, turn));
  }
  void read(int turn) const {
    for (int group : team_.other_groups()) {
      const int owner = team_.twin(group);
      b_.copy(b_.of_peer(owner, shown(owner, turn)), block(owner, turn));
      b_.copy(block(owner, turn), passed_on(group, owner, turn));
    }
    for (int index : team_.other_indices()) {
      const int owner = team_.mate(index);
      b_.copy(b_.of_peer(owner, shown(owner, turn)), block(owner, turn));
    }
  }
  void copy_out(int turn) const {
    for (int index : team_.other_indices())
      for (int group : team_.other_groups()) {
        const int owner = team_.rank_of(group, index);
        b_.copy(b_.of_peer(team_.mate(index), passed_on(group, owner, turn)), block(owner, turn));
      }
  }
  void run() const {
    in_phases(b_, team_, blocks_, 3, [&](int phase, int block) {
      if (phase == 0) show(block);
      if (phase == 1) read(block);
      if (phase == 2) copy_out(block);
    });
  }

 private:
  Segment block(int unit, int turn) const { return b_.output(unit * blocks_ + turn); }
  Segment shown(int unit, int turn) const { return shown_.slot(turn, block(unit, turn)); }
  // What the own group has from that one, by its distance.
  Segment passed_on(int group, int unit, int turn) const {
    const int distance = (group - team_.group() + team_.groups()) % team_.groups();
    return passed_on_[static_cast<std::size_t>(distance) - 1].slot(turn, block(unit, turn));
  }

  Builder& b_;
  Team team_;
  int blocks_;
  Turns shown_;
  std::vector<Turns> passed_on_;
};

void build(const Problem&, const Knobs& knobs, Builder& b) { Grouped(b, blocks_of(knobs)).run(); }

Cost cost(const Problem& pb, const Knobs& knobs) {
  return {.rounds = pb.ranks > 1 ? blocks_of(knobs) + 1.0 : 0.0, .volume = 0, .reduced = 0};
}

}  // namespace

extern const Algorithm allgather_numa{
    .collective = Collective::allgather, .name = "numa", .cuts = cuts, .build = build, .cost = cost,
    .takes = {.blocks = true}, .access = Access::staging, .grouped = true};

}  // namespace paceline
