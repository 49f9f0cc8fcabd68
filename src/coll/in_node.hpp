// Messages inside a node of a hierarchy, for ranks that have no staging buffers. A single leader is
// reached by a tree, several leaders directly.
#pragma once

#include <algorithm>
#include <map>
#include <vector>

#include "coll/algorithms.hpp"
#include "coll/hierarchy.hpp"
#include "coll/staged.hpp"
#include "shapes/binomial.hpp"

namespace paceline {

// The node's sum of `in`, to `out` of the one leader; other ranks' `out` is in use meanwhile.
inline Phase sum_at_leader(const Hierarchy& h, const Region& in, const Region& out) {
  return {.algorithm = &reduce_binomial, .members = h.mates(), .root = h.index_of_leader(),
          .input = in, .output = out};
}
inline Phase tell_node(const Hierarchy& h, const Region& region) {
  return {.algorithm = &broadcast_binomial, .members = h.mates(), .root = h.index_of_leader(),
          .input = region, .output = region};
}

inline Segment copied(Builder& b, const Segment& segment) {
  const Segment held = b.scratch(segment);
  b.copy(segment, held);
  return held;
}

// The leader of each part sums, in rank order, what the node's ranks have of it; this rank has
// mine(part).
template <class Mine>
void sum_parts(Builder& b, const Hierarchy& h, const Mine& mine, const std::vector<Segment>& sums) {
  for (int mate : h.others())
    if (const int part = h.part_led_by(mate); part >= 0) b.send(mate, mine(part));
  if (h.part() < 0) return;
  std::map<int, std::vector<Segment>> of_rank{{b.problem().rank, mine(h.part())}};
  for (Segment& own : of_rank[b.problem().rank])
    if (h.sums_in_steps()) own = copied(b, own);   // the sums may lie where it is
  const std::vector<int> others = h.others();
  for (auto mate = others.rbegin(); mate != others.rend(); ++mate) {
    std::vector<Segment>& came = of_rank[*mate];
    for (const Segment& shape : sums) came.push_back(b.scratch(shape));
    b.recv(*mate, came);
  }
  for (std::size_t i = 0; i < sums.size(); ++i) {
    std::vector<Segment> operands;
    for (int mate : h.mates()) operands.push_back(of_rank[mate][i]);
    sum(b, operands, sums[i]);
  }
}

// The leader of each part sends of(part) to the node's other ranks, which have it there afterwards.
template <class Of>
void tell_parts(Builder& b, const Hierarchy& h, const Of& of) {
  const std::vector<int> others = h.others();
  if (h.part() >= 0)
    for (int mate : others) b.send(mate, of(h.part()));
  for (auto mate = others.rbegin(); mate != others.rend(); ++mate)
    if (const int part = h.part_led_by(*mate); part >= 0) b.recv(*mate, of(part));
}

// Rounds of a tree inside the largest node, for the message to its leader or from it.
inline double tree_rounds(const Hierarchy& h) { return ceil_log2(h.most_ranks()); }

}  // namespace paceline
