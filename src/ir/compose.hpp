// compose: a collective made of collectives among groups of ranks, as one schedule.
//
// Every phase is recorded through maps of ranks and blocks into the same Builder. The edges come
// from what the steps read and write, so phases that touch different blocks overlap by themselves.
#pragma once

#include <vector>

#include "ir/algorithm.hpp"

namespace paceline {

struct Phase {
  const Algorithm* algorithm = nullptr;
  Knobs knobs = {};
  std::vector<int> members = {};    // ranks by position; other ranks skip the phase
  int root = 0;                     // a position
  std::vector<int> late = {};       // positions; empty: those of the whole's late ranks
  Region input = {}, output = {};   // blocks of the whole collective's buffers
  bool completes = false;           // after this phase the sums of its blocks hold every rank
  bool leaves_out = false;          // some ranks are in no such phase: its algorithm has no tail
  bool whole = false;               // from this phase on: Builder::whole()
  bool reads_scratch = false;       // the same
};

// 0, 1, ..., ranks - 1: the members of a phase of all ranks.
std::vector<int> all_ranks(int ranks);

// All of a buffer's blocks as a region.
Region region_of(const Segment& segment);

// The blocks of `shape` on a rank that has room for some of them only: `slot` is scratch for those
// that the phase reads or writes here.
Region region_in(const Segment& slot, const Region& shape);

// Records this rank's part of every phase, in order. Throws a refusal if a phase's algorithm
// rejects its part.
void compose(Builder& builder, int rank, const std::vector<Phase>& phases);

}  // namespace paceline
