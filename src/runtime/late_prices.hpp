// Expected times of a call with late ranks, for their predictor.
#pragma once

#include "arrival/predict.hpp"
#include "tune/choose.hpp"

namespace paceline {

// Returns the prices of a call whose choice without late ranks is `usual`. problem.late is ignored.
CallPrices prices_for_late(const Problem& problem, const ChoiceInputs& now, const Choice& usual);

}  // namespace paceline
