// The table of choices: one row for each use of an algorithm, in table.cpp.
//
// Rows for shared memory have measured lengths: a call takes the first row that fits. Otherwise it
// takes the row for messages with the least estimate (estimate.hpp).
#pragma once

#include <limits>
#include <span>

#include "ir/algorithm.hpp"

namespace paceline {

// Kind of pieces: none (whole), pipeline segments of the message, or the algorithm's own blocks.
// Sums: segments, either of all of it or only of the reduce_scatter that comes first, whichever
// takes less.
enum class CutInto { whole, segments, sums, blocks };

// Traits of a row, as bits. Lean: hardly more than one rank of a node at a time talks to other
// nodes, so that they do not share the node's port. Strict: messages must not run ahead of their
// rounds if ranks have one port each way (ir/in_step.hpp). Named: taken only if the caller names
// it, with the row's cut.
inline constexpr unsigned lean = 1, strict = 2, named = 4;

struct Row {
  const Algorithm* algorithm;
  const char* why;

  // For algorithms that send messages.
  CutInto cut = CutInto::whole;
  // Messages that a piece costs the busiest port of a pipe, in which a rank hands every piece on.
  // 0: no pipe; a piece costs it as much as the whole algorithm.
  int hops = 0;
  unsigned traits = 0;
  Knobs knobs = {};

  // For algorithms that work in memory that ranks share.
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

// Rows of all collectives; those of one collective in the order in which they are tried.
std::span<const Row> rows();

}  // namespace paceline
