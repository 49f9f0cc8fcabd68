// Estimate: how long a call takes with an algorithm that is cut in its best number of pieces.
#pragma once

#include <string_view>

#include "ir/algorithm.hpp"
#include "tune/choose.hpp"

namespace paceline {

// What a later row must stay below to displace an earlier one.
inline constexpr double kMargin = 0.95;

// Sums: segments of the reduce_scatter that comes first, or of all, whichever takes less.
enum class CutInto { whole, segments, sums, blocks };

// Traits. Lean: hardly more than one rank of a node talks to other nodes at a time. Strict: where
// ranks have one port each way, messages must not run ahead of their rounds (ir/in_step.hpp). On
// nodes: wants to know which ranks share one (Algorithm::by_nodes), and its cost counts messages at
// the port that they share. Named: taken where somebody names it; the row says how it is cut then.
inline constexpr unsigned lean = 1, strict = 2, on_nodes = 4, named = 8;

// How an algorithm is meant to be used.
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
  int pieces = 1;
  bool in_step = false;
  bool whole_tail = false;
};

Estimate estimate(const Candidate& row, const Algorithm& a, const Problem& p,
                  const ChoiceInputs& now);

}  // namespace paceline
