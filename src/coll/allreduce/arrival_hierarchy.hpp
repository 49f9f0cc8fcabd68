// Allreduce in a hierarchy whose nodes sum in the order in which their ranks come. Other nodes must
// know before the call who talks to them, so that a node's leader is its first rank as ever; it
// keeps position 0 and adds last. The node's other ranks take positions as they come, and add
// among themselves before that.
#pragma once

#include "coll/algorithms.hpp"
#include "coll/allreduce/hierarchy.hpp"

namespace paceline {

inline std::optional<Reason> unless_nodes_stage(const Problem& pb) {
  if (stages_in_nodes(pb)) return {};
  return Reason{"ranks of a node take positions in its staging buffers, and these have none",
                "hierarchical_rsa"};
}

// `holder`: position that has the sum of all others in its slot once sum_others(position, slot) of
// each of them is done, and has told the leader.
template <class SumOthers>
void allreduce_by_arrival(Builder& b, const Hierarchy& h, int holder, const SumOthers& sum_others) {
  const Segment slot = b.staging(b.output());
  const std::vector<int>& ranks = h.mates();   // by position
  const auto position = static_cast<int>(
      std::find(ranks.begin(), ranks.end(), b.problem().rank) - ranks.begin());
  const bool is_alone = ranks.size() == 1;
  if (position > 0) {
    sum_others(position, slot);
    b.wait(h.leader());
    return b.copy(b.of_peer(h.leader(), slot), b.output());
  }
  if (is_alone) {
    b.copy(b.input(), b.output());
  } else {
    const int others = ranks[std::size_t(holder)];
    b.wait(others);
    b.reduce({b.of_peer(others, slot), b.input()}, b.output());
  }
  sum_across(b, h, allreduce_rabenseifner, b.output());
  if (is_alone) return;
  b.copy(b.output(), slot);
  h.signal_mates(b);
}

inline int cuts_by_arrival(const Problem& pb, const Knobs& knobs) {
  return allreduce_rabenseifner.cuts(between_nodes(Hierarchy(pb, 1)), knobs);
}

// `signals`: one after the other, of a node of so many ranks.
inline Cost cost_by_arrival(const Hierarchy& h, double signals) {
  Cost cost = allreduce_rabenseifner.cost(between_nodes(h), {});
  const double most = h.most_ranks();
  cost.messages = 0;
  cost.reduced += most - 1;
  if (most == 1) return cost;
  cost.near_rounds = signals;
  cost.near_volume = most;   // read from others: by those who add, and of the result
  return cost;
}

}  // namespace paceline
