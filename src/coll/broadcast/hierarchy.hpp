// Broadcast in a hierarchy, with any algorithm between nodes. The root leads its node.
#pragma once

#include "coll/in_node.hpp"

namespace paceline {

inline void broadcast_in_hierarchy(Builder& b, const Algorithm& between) {
  const Problem& pb = b.problem();
  const Hierarchy h(pb, 1);
  const Segment shown = h.stages() ? b.staging(b.output()) : b.output();
  const Region all = region_of(b.output());
  const bool leads = h.part() == 0;
  if (leads)
    compose(b, pb.rank, {{.algorithm = &between, .members = h.across(),
                          .root = h.node_of(pb.root), .input = all, .output = all,
                          .leaves_out = true}});
  if (h.mates().size() == 1) return;
  if (!h.stages()) return compose(b, pb.rank, {tell_node(h, all)});
  if (leads) {
    h.wait_for_mates(b);   // they have read what was shown there before
    b.copy(b.output(), shown);
    h.signal_mates(b);
  } else {
    b.signal(h.leader());
    b.wait(h.leader());
    b.copy(b.of_peer(h.leader(), shown), b.output());
  }
}

inline Cost cost_of_broadcast(const Problem& pb, const Algorithm& between) {
  const Hierarchy h(pb, 1);
  const Cost across = between.cost({.collective = pb.collective, .ranks = h.nodes()}, {});
  Cost cost{.rounds = across.rounds, .volume = across.volume, .reduced = 0};
  if (h.most_ranks() > 1) {
    cost.near_rounds = h.stages() ? 2 : tree_rounds(h);
    cost.near_volume = h.stages() ? 1 : tree_rounds(h);
  }
  return cost;
}

// The functions of an Algorithm, with the broadcast `between` among the leaders.
template <const Algorithm& between>
struct BroadcastByNodes {
  static void build(const Problem&, const Knobs&, Builder& b) {
    broadcast_in_hierarchy(b, between);
  }
  static Cost cost(const Problem& pb, const Knobs&) { return cost_of_broadcast(pb, between); }
};

}  // namespace paceline
