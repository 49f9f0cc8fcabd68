// The table of choices: what is known of each algorithm's use, one row each, in table.cpp.
//
// Rows for shared memory have measured lengths: a call takes the first row that fits. Of the rows
// for messages it takes the one with the least estimate (estimate.hpp).
#pragma once

#include <limits>
#include <span>

#include "ir/algorithm.hpp"

namespace paceline {

// What is cut in pieces: nothing (whole), the message into pipeline segments, or into the
// algorithm's own blocks. Sums: into segments, either all of it or only the reduce_scatter that
// comes first, whichever takes less.
enum class CutInto { whole, segments, sums, blocks };

// Traits of a row, as bits. Lean: at a time hardly more than one rank of a node talks to other
// nodes, so that they do not share the node's port. Strict: where ranks have one port each way,
// messages must not run ahead of their rounds (ir/in_step.hpp). Named: taken only where the caller
// names it; the row says how it is cut then.
inline constexpr unsigned lean = 1, strict = 2, named = 4;

struct Row {
  const Algorithm* algorithm;
  const char* why;

  // Of an algorithm that sends messages.
  CutInto cut = CutInto::whole;
  // Of a pipe, in which a rank hands every piece on: how many messages a piece costs the busiest
  // port. 0: no pipe; a piece costs it what the whole algorithm costs.
  int hops = 0;
  unsigned traits = 0;
  Knobs knobs = {};

  // Of one that works in memory that ranks share.
  static constexpr int kAnyRanks = std::numeric_limits<int>::max();
  static constexpr std::size_t kAnyBytes = std::numeric_limits<std::size_t>::max();
  std::size_t from_bytes = 0, below_bytes = kAnyBytes;   // of the message
  int from_ranks = 2, to_ranks = kAnyRanks;
  double room = 0;      // bytes of the staging buffer per byte of a block
  bool flows = false;   // some ranks copy in while others copy out the block before

  bool is_in_memory() const { return algorithm->is_load_store(); }
  bool fits(int ranks, std::size_t bytes) const {
    return bytes >= from_bytes && bytes < below_bytes && ranks >= from_ranks && ranks <= to_ranks;
  }
};

// Of all collectives; those of one collective in the order in which they are tried.
std::span<const Row> rows();

}  // namespace paceline
