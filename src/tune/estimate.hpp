// Estimate: how long a call takes with an algorithm that is cut in its best number of pieces.
#pragma once

#include <string_view>

#include "ir/algorithm.hpp"
#include "tune/choose.hpp"

namespace paceline {

// A later row displaces an earlier one if it takes less than this part of its time.
inline constexpr double kMargin = 0.95;

// What is cut in pieces: nothing (whole), the message into pipeline segments, or into the
// algorithm's own blocks. Sums: into segments, either all of it or only the reduce_scatter that
// comes first, whichever takes less.
enum class CutInto { whole, segments, sums, blocks };

// Traits of an algorithm, as bits. Lean: at a time hardly more than one rank of a node talks to
// other nodes, so that they do not share the node's port. Strict: where ranks have one port each
// way, messages must not run ahead of their rounds (ir/in_step.hpp). On nodes: it looks at which
// ranks share one (Algorithm::by_nodes), and its cost counts messages at the port that they share.
// Named: taken only where the caller names it; the row says how it is cut then.
inline constexpr unsigned lean = 1, strict = 2, on_nodes = 4, named = 8;

// A row of the table in choose.cpp: how an algorithm is meant to be used.
struct Candidate {
  Collective collective;
  std::string_view algorithm;
  CutInto cut = CutInto::whole;
  // Of a pipe, in which a rank hands every piece on: how many messages a piece costs the busiest
  // port. 0: no pipe; a piece costs it what the whole algorithm costs.
  int hops = 0;
  unsigned traits = 0;
  const char* why = "";
  Knobs knobs = {};
};

struct Estimate {
  double seconds = 0;
  int pieces = 1;            // into which Candidate::cut is cut
  bool in_step = false;      // rounds wait for each other (ir/in_step.hpp)
  bool whole_tail = false;   // only the sums are cut
};

// Cut into `pieces`; 0: into the best number of pieces.
Estimate estimate(const Candidate& row, const Algorithm& a, const Problem& p,
                  const ChoiceInputs& now, int pieces = 0);

}  // namespace paceline
