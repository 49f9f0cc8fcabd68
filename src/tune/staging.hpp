// Room for the segments of schedules that use the staging buffers of a node (stages_in_nodes()).
#pragma once

#include "tune/choose.hpp"

namespace paceline {

// Whether the segments under way have room there, at most `most_window` at a time; if need be makes
// the choice's segments more, and fewer of them go on at a time.
bool fits_staging(Choice& choice, const Problem& p, const ChoiceInputs& now, int most_window);

}  // namespace paceline
