// Helpers of algorithms whose ranks show each other their scratch.
//
// A rank writes into its own scratch or, when two ranks swap slots, into the peer's. A slot is
// written again when all its readers have said so: by meeting once more, or because the call is
// over (the engine sees to that: src/engine/shm/load_store.hpp).
#pragma once

#include <algorithm>
#include <vector>

#include "coll/shared.hpp"

namespace paceline {

// Slots in turn: while peers read one, the next block goes to another. No more than there are
// blocks. Ranks that meet at each block need two.
constexpr int kSlots = 2;

class Turns {
 public:
  Turns(Builder& b, const Segment& shape, int blocks, int slots = kSlots) {
    for (int i = 0; i < std::min(blocks, slots); ++i) slots_.push_back(b.scratch(shape));
  }
  Segment slot(int turn, const Segment& shape) const {
    return Builder::as(slots_[static_cast<std::size_t>(turn) % slots_.size()], shape);
  }

 private:
  std::vector<Segment> slots_;
};

// Slots in which a rank shows something to one other rank each, by the distance to it: so two ranks
// have one place for both directions, as stages that are swapped want it
// (engine/shm/shm_channel.hpp). Each time their slots have had their turns, two ranks swap those as
// well: the reader of a slot may write there.
class Directed {
 public:
  Directed(Builder& b, const Segment& shape, int blocks) : b_(b), ranks_(b.problem().ranks) {
    for (int distance = 1; distance < ranks_; ++distance) turns_.emplace_back(b, shape, blocks);
  }
  int owner(int from, int to, int turn) const {   // of the slot
    return ranks_ == 2 && turn / kSlots % 2 == 1 ? to : from;
  }
  // Segment of that shape in which `from` shows something to `to`, on either side.
  Segment at(int from, int to, int turn, const Segment& shape) const {
    const int distance = (to - from + ranks_) % ranks_;
    const Segment slot = turns_[static_cast<std::size_t>(distance - 1)].slot(turn, shape);
    const int owner = this->owner(from, to, turn);
    return owner == b_.problem().rank ? slot : b_.of_peer(owner, slot);
  }

 private:
  Builder& b_;
  int ranks_;
  std::vector<Turns> turns_;
};

// Number of blocks by which a rank that only shows may be ahead of one that only looks.
constexpr int kAhead = 4;

// Cost if every rank sums a slice of each block, and a block is shown while the one before is
// taken.
inline Cost cost_of_slices(const Problem& pb, const Knobs& knobs) {
  const double share = double(pb.ranks - 1) / pb.ranks;
  return {.rounds = pb.ranks > 1 ? blocks_of(knobs) + 1.0 : 0.0, .reduced = share,
          .copied = 2 * share};
}

// Segments that all ranks have in the same place of their scratch, in rank order; this rank's is
// `mine`.
inline std::vector<Segment> of_everybody(const Builder& b, const Segment& slot,
                                         const Segment& mine) {
  std::vector<Segment> all;
  for (int rank = 0; rank < b.problem().ranks; ++rank)
    all.push_back(rank == b.problem().rank ? mine : b.of_peer(rank, slot));
  return all;
}

inline void signal_others(Builder& b) {
  for (int k = 1; k < b.problem().ranks; ++k)
    b.signal((b.problem().rank + k) % b.problem().ranks);
}

inline void wait_for_others(Builder& b) {
  for (int k = 1; k < b.problem().ranks; ++k)
    b.wait((b.problem().rank + k) % b.problem().ranks);
}

}  // namespace paceline
