// Estimate: the time of a call with an algorithm that is cut in its best number of pieces.
#pragma once

#include "ir/algorithm.hpp"
#include "tune/choice.hpp"
#include "tune/table.hpp"

namespace paceline {

// A later row displaces an earlier one if it takes less than this part of its time.
inline constexpr double kMargin = 0.95;

struct Estimate {
  double seconds = 0;
  int pieces = 1;            // into which Row::cut is cut
  bool in_step = false;      // rounds wait for each other (ir/in_step.hpp)
  bool whole_tail = false;   // only the sums are cut
};

// Estimates a row for messages, cut into `pieces` with `window` of them under way at a time; 0: the
// best number of pieces, and all of them.
Estimate estimate(const Row& row, const Problem& p, const ChoiceInputs& now, int pieces = 0,
                  int window = 0);

// Returns the seconds that a call with this choice takes on the machine, from the last rank's entry
// on, with no late ranks: the price by which calls are compared.
double expected_s(const Choice& choice, const Problem& p, const ChoiceInputs& now);

}  // namespace paceline
