// What algorithms have in common in which one rank of each node, its leader, talks to those of the
// other nodes: to few of them, and the more rarely, the more ranks a node has.
#pragma once

#include <optional>

#include "coll/lanes.hpp"

namespace paceline {

// Operands stay in rank order where the ranks of a node are neighbours.
inline std::optional<Reason> rejects_scattered_nodes(const Problem& pb) {
  if (!pb.commutative && !Groups(pb.ranks, pb.groups).keep_order())
    return Reason{"leaders sum node by node, and these ranks of a node are no neighbours", ""};
  return {};
}

// A problem as its leaders have it, and as the ranks of a node do.
inline Problem among_leaders(const Problem& pb) { return {.ranks = Lanes(pb).nodes()}; }
inline Problem among_mates(const Problem& pb) { return {.ranks = Lanes(pb).count()}; }

// One phase between leaders, and before and after it phases inside nodes.
inline Cost cost_of(const Cost& before, const Cost& leaders, const Cost& after) {
  return {.rounds = leaders.rounds,
          .volume = leaders.volume,
          .reduced = before.reduced + leaders.reduced + after.reduced,
          .near_rounds = before.rounds + after.rounds,
          .near_volume = before.volume + after.volume};
}

}  // namespace paceline
