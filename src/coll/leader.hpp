// Steps of algorithms with a leader: the other ranks copy their vectors into their staging buffers,
// the leader sums them and copies the sum into its own, the others copy it out.
#pragma once

#include "coll/staged.hpp"

namespace paceline {

// The leader copies its output, the sum, into its staging buffer and tells all others.
inline void show_sum(Builder& b, const Segment& slot) {
  b.finish(b.output());
  if (b.problem().ranks == 1) return;
  b.copy(b.output(), slot);
  signal_others(b);
}

// The other ranks copy it out.
inline void take_sum(Builder& b, int leader, const Segment& slot) {
  b.wait(leader);
  b.copy(b.of_peer(leader, slot), b.output());
}

inline void show_input(Builder& b, int leader, const Segment& slot) {
  b.copy(b.input(), slot);
  b.signal(leader);
}

// The rank at position 0 leads: it adds the vectors of the others one by one, in the order of their
// positions, which is that of their arrival.
inline void lead_by_position(Builder& b) {
  const Segment slot = b.scratch(b.output());
  if (b.problem().rank != 0) {
    show_input(b, 0, slot);
    return take_sum(b, 0, slot);
  }
  if (b.problem().ranks == 1) b.copy(b.input(), b.output());
  for (int k = 1; k < b.problem().ranks; ++k) {
    b.wait(k);
    b.reduce({k == 1 ? b.input() : b.output(), b.of_peer(k, slot)}, b.output());
  }
  show_sum(b, slot);
}

inline Cost cost_of_leader(const Problem& pb, const Knobs&) {
  if (pb.ranks == 1) return {};
  return {.rounds = 2, .reduced = pb.ranks - 1.0, .copied = 3};
}

}  // namespace paceline
