// Reduce in a hierarchy, with any algorithm between nodes. The root leads its node.
#pragma once

#include "coll/in_node.hpp"
#include "coll/rejects.hpp"

namespace paceline {

inline std::optional<Reason> rejects_in_hierarchy(const Problem& pb) {
  if (const auto reason = unless_root_may_begin(pb)) return reason;
  return unless_nodes_in_order(pb);
}

inline void reduce_across(Builder& b, const Hierarchy& h, const Algorithm& between,
                          const Region& input, const Region& sum) {
  compose(b, b.problem().rank, {{.algorithm = &between, .members = h.across(),
                                 .root = h.node_of(b.problem().root), .input = input,
                                 .output = sum, .completes = true,
                                 .leaves_out = true}});
}

inline void reduce_by_messages(Builder& b, const Hierarchy& h, const Algorithm& between) {
  const bool leads = h.part() == 0, is_root = b.problem().rank == b.problem().root;
  const Region input = region_of(b.input());
  const Region sum =
      leads && !is_root ? region_in(b.scratch(b.input()), input) : region_of(b.output());
  compose(b, b.problem().rank, {sum_at_leader(h, input, sum)});
  if (leads) reduce_across(b, h, between, sum, sum);
}

// Only the root has an output; another leader has room of its own for its node's sum.
inline void reduce_in_hierarchy(Builder& b, const Algorithm& between) {
  const Problem& pb = b.problem();
  const Hierarchy h(pb, 1);
  if (!h.stages()) return reduce_by_messages(b, h, between);
  const Segment shown = b.staging(b.output());   // shaped alike if the root is in place
  if (h.part() != 0) {
    b.copy(b.input(), shown);
    b.signal(h.leader());
    return b.wait(h.leader());   // until it has read that
  }
  const bool is_root = pb.rank == pb.root, is_alone = h.mates().size() == 1;
  const Segment target = is_root || is_alone ? b.output() : b.scratch(b.output());
  Region sum = region_of(b.output()), input = region_of(b.input());
  if (!is_root && !is_alone) sum = region_in(target, region_of(b.output()));
  if (!is_alone) {
    Segment mine = b.input();
    if (h.sums_in_steps()) {
      b.copy(mine, shown);
      mine = shown;
    }
    h.wait_for_mates(b);
    paceline::sum(b, h.of_mates(b, shown, mine), target);
    h.signal_mates(b);
    input = sum;
  }
  reduce_across(b, h, between, input, sum);
}

inline Cost cost_of_reduce(const Problem& pb, const Algorithm& between) {
  const Hierarchy h(pb, 1);
  const Cost across = between.cost({.collective = pb.collective, .ranks = h.nodes()}, {});
  const double others = h.most_ranks() - 1, tree = tree_rounds(h);
  const double sums = h.stages() ? others : tree;
  return {.rounds = across.rounds, .volume = across.volume, .reduced = sums + across.reduced,
          .near_rounds = !h.stages() ? tree : others > 0 ? 2.0 : 0.0, .near_volume = sums};
}

// The functions of an Algorithm, with the reduce `between` among the leaders.
template <const Algorithm& between>
struct ReduceByNodes {
  static void build(const Problem&, const Knobs&, Builder& b) { reduce_in_hierarchy(b, between); }
  static Cost cost(const Problem& pb, const Knobs&) { return cost_of_reduce(pb, between); }
};

}  // namespace paceline
