// What algorithms have in common that take ranks in groups, where memory is nearer inside a group
// than between groups: next to everything is read from mates, who are in the own group; what must
// come from another group is read once, by the rank there that stands where its owner does: by its
// twin. So a rank meets its mates and its twins only.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "coll/staged.hpp"
#include "shapes/groups.hpp"

namespace paceline {

class Team {
 public:
  explicit Team(const Problem& pb)
      : groups_(pb.ranks, pb.groups),
        group_(groups_.group_of(pb.rank)),
        index_(groups_.index_of(pb.rank)) {}

  int groups() const { return groups_.count(); }
  int size() const { return groups_.size(); }
  int group() const { return group_; }   // the own one
  int index() const { return index_; }   // in it
  int mate(int index) const { return groups_.member(group_, index); }
  int twin(int group) const { return groups_.member(group, index_); }
  int rank_of(int group, int index) const { return groups_.member(group, index); }
  bool is_mate(int rank) const { return groups_.group_of(rank) == group_; }

  // The others of the own group, and the twins, each from the next one on: not all ask the same.
  std::vector<int> other_indices() const { return others(index_, size()); }
  std::vector<int> other_groups() const { return others(group_, groups()); }

  // What they have in the same place of their scratch, in order; of this rank, `mine`.
  std::vector<Segment> of_mates(const Builder& b, const Segment& slot, const Segment& mine) const {
    std::vector<Segment> all;
    for (int i = 0; i < size(); ++i) all.push_back(i == index_ ? mine : b.of_peer(mate(i), slot));
    return all;
  }
  std::vector<Segment> of_twins(const Builder& b, const Segment& slot, const Segment& mine) const {
    std::vector<Segment> all;
    for (int g = 0; g < groups(); ++g) all.push_back(g == group_ ? mine : b.of_peer(twin(g), slot));
    return all;
  }

  void signal_mates(Builder& b) const {
    for (int i : other_indices()) b.signal(mate(i));
  }
  void wait_for_mates(Builder& b) const {
    for (int i : other_indices()) b.wait(mate(i));
  }
  void meet(Builder& b) const {
    signal_mates(b);
    for (int g : other_groups()) b.signal(twin(g));
    wait_for_mates(b);
    for (int g : other_groups()) b.wait(twin(g));
  }

 private:
  static std::vector<int> others(int own, int all) {
    std::vector<int> out;
    for (int k = 1; k < all; ++k) out.push_back((own + k) % all);
    return out;
  }

  Groups groups_;
  int group_, index_;
};

// Sums go group by group.
inline std::optional<Reason> rejects_scattered(const Problem& pb) {
  if (!pb.commutative && !Groups(pb.ranks, pb.groups).keep_order())
    return Reason{"grouped sums group by group, and these groups are no neighbours", ""};
  return {};
}

// Block after block goes through `phases`, each on to the next when the ranks have met: while one
// is shown, the one before is summed, and so on. do_phase(phase, block).
template <class DoPhase>
void in_phases(Builder& b, const Team& team, int blocks, int phases, DoPhase&& do_phase) {
  const int turns = blocks + phases - 1;
  for (int turn = 0; turn < turns; ++turn) {
    for (int phase = phases - 1; phase >= 0; --phase)   // the oldest first: peers wait for it
      if (turn >= phase && turn - phase < blocks) do_phase(phase, turn - phase);
    if (turn + 1 < turns) team.meet(b);
  }
}

}  // namespace paceline
