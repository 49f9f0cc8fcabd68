// What the choice expects a call to take, as the predictor of late ranks asks for it.
#pragma once

#include "arrival/predict.hpp"
#include "tune/choose.hpp"

namespace paceline {

// Of a call that usually goes as `usual`, with the problem's late ranks left out.
CallPrices prices_for_late(const Problem& problem, const ChoiceInputs& now, const Choice& usual);

}  // namespace paceline
