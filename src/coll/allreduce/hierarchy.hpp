// Allreduce in a hierarchy, with any algorithm between nodes.
#pragma once

#include "coll/in_node.hpp"

namespace paceline {

// The problem of the leaders that exchange one part of the message.
inline Problem between_nodes(const Hierarchy& h) {
  return {.ranks = h.nodes(), .late = h.late()};
}
inline int cuts_in_hierarchy(const Hierarchy& h, const Algorithm& between,
                             const Knobs& knobs = {}) {
  return h.leaders() * between.cuts(between_nodes(h), knobs);
}

// Cost on the largest node: its leaders get their part of what the others have, and then all get
// the parts of the other leaders. Leaders of a node share its port.
inline Cost cost_in_hierarchy(const Hierarchy& h, const Algorithm& between,
                              const Knobs& knobs = {}) {
  const Cost across = between.cost(between_nodes(h), knobs);
  const double parts = h.leaders(), most = h.most_ranks();
  Cost cost = across;
  cost.messages = 0;
  cost.rounds = across.rounds * parts;
  cost.reduced =
      h.by_trees() ? tree_rounds(h) + across.reduced : ((most - 1) + across.reduced) / parts;
  if (most == 1) return cost;
  if (h.by_trees()) {
    cost.near_rounds = cost.near_volume = 2 * tree_rounds(h);
  } else if (h.stages()) {
    cost.near_rounds = 2;
    cost.near_volume = (most - 1) / parts + (most > parts ? 1 : (parts - 1) / parts);
  } else {
    cost.near_rounds = 2 * (most - 1);
    cost.near_volume = 2 * (most - 1) / parts;
  }
  return cost;
}

// Sums a part among its leaders, each with its node's sum in place.
inline void sum_across(Builder& b, const Hierarchy& h, const Algorithm& between,
                       const Segment& sum, const Knobs& knobs = {}) {
  const Region region = region_of(sum);
  compose(b, b.problem().rank,
          {{.algorithm = &between, .knobs = knobs, .members = h.across(h.part()),
            .late = h.late(), .input = region, .output = region, .completes = true,
            .leaves_out = true}});
}

inline void allreduce_by_messages(Builder& b, const Hierarchy& h, const Algorithm& between,
                                  const Knobs& knobs = {}) {
  const int rank = b.problem().rank, part = h.part(), blocks = b.total() / h.leaders();
  const Region input = region_of(b.input()), output = region_of(b.output());
  const auto of = [&](int p) { return std::vector{b.output(p * blocks, blocks)}; };
  const auto mine = [&](int p) { return std::vector{b.input(p * blocks, blocks)}; };
  if (h.by_trees()) compose(b, rank, {sum_at_leader(h, input, output)});
  else sum_parts(b, h, mine, part < 0 ? std::vector<Segment>{} : of(part));
  if (part >= 0) sum_across(b, h, between, of(part)[0], knobs);
  if (h.by_trees()) compose(b, rank, {tell_node(h, output)});
  else tell_parts(b, h, of);
}

inline void allreduce_in_hierarchy(Builder& b, const Hierarchy& h, const Algorithm& between,
                                   const Knobs& knobs = {}) {
  if (!h.stages()) return allreduce_by_messages(b, h, between, knobs);
  const int part = h.part(), blocks = b.total() / h.leaders();
  const auto output = [&](int p) { return b.output(p * blocks, blocks); };
  const Segment shown = b.staging(b.output()), sums = b.staging(output(0));
  const auto show = [&](int first, int parts) {
    if (parts == 0) return;
    b.copy(b.input(first * blocks, parts * blocks),
           Builder::part(shown, first * blocks, parts * blocks));
  };
  const bool is_alone = h.mates().size() == 1;
  const int kept = is_alone || h.sums_in_steps() ? -1 : part;   // read where it is
  if (!is_alone) {
    show(0, kept < 0 ? h.leaders() : kept);
    if (kept >= 0) show(kept + 1, h.leaders() - kept - 1);
    h.signal_mates(b);
    h.wait_for_mates(b);
  }
  if (part >= 0) {
    const Segment own = Builder::part(shown, part * blocks, blocks);
    const bool reads_own = is_alone || kept >= 0;
    sum(b, h.of_mates(b, own, reads_own ? b.input(part * blocks, blocks) : own), output(part));
    sum_across(b, h, between, output(part));
  }
  if (is_alone) return;
  if (part >= 0) b.copy(output(part), Builder::as(sums, output(part)));
  h.signal_mates(b);
  h.wait_for_mates(b);
  for (int p = 0; p < h.leaders(); ++p)
    if (p != part)
      b.copy(b.of_peer(h.leader(p), Builder::as(sums, output(p))), output(p));
}

// The functions of an Algorithm: `levels` inside the nodes, the allreduce `between` among them.
template <Hierarchy (*levels)(const Problem&), const Algorithm& between>
struct AllreduceByNodes {
  static int cuts(const Problem& pb, const Knobs& knobs) {
    return cuts_in_hierarchy(levels(pb), between, knobs);
  }
  static void build(const Problem& pb, const Knobs& knobs, Builder& b) {
    allreduce_in_hierarchy(b, levels(pb), between, knobs);
  }
  static Cost cost(const Problem& pb, const Knobs& knobs) {
    return cost_in_hierarchy(levels(pb), between, knobs);
  }
};

}  // namespace paceline
