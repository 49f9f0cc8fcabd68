// choose: which algorithm serves a call, in how many pieces, and why.
//
// A pure function of what is equal on all ranks, so that all ranks choose alike: the problem, the
// bytes, and numbers for the machine. Where ranks share memory, tables of measured lengths decide.
// Otherwise it asks the cost of every candidate, says how long that takes when the message is cut
// into its best number of pieces, and takes the shortest. The table is in table.cpp; `paceline
// explain` prints what comes of it.
#pragma once

#include "ir/algorithm.hpp"
#include "tune/choice.hpp"

namespace paceline {

// Throws a usage error for a knob that the algorithm does not have or that is out of range.
void check_knobs(const Algorithm& algorithm, const Knobs& knobs);

// Throws a usage error or a refusal for a wish that cannot be met.
Choice choose(const Problem& problem, const ChoiceInputs& now, const Overrides& wish = {});

}  // namespace paceline
