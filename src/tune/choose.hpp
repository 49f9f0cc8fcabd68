// choose: selects the algorithm that serves a call and its number of pieces, and says why.
//
// A pure function of inputs that are equal on all ranks, so that all ranks choose alike: the
// problem, the bytes and the machine's figures. In shared memory a table of measured lengths
// decides. Otherwise it estimates the time of every candidate, cut into its best number of pieces,
// and takes the shortest. The table is in table.cpp; `paceline explain` prints the choice.
#pragma once

#include "ir/algorithm.hpp"
#include "tune/choice.hpp"

namespace paceline {

// Throws a usage error for a knob that the algorithm does not have or that is out of range.
void check_knobs(const Algorithm& algorithm, const Knobs& knobs);

// Throws a usage error or a refusal for a wish that cannot be met.
Choice choose(const Problem& problem, const ChoiceInputs& now, Overrides wish = {});

}  // namespace paceline
