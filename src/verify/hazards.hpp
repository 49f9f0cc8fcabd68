// check_hazards: proves that all steps that conflict over memory are ordered, whatever the timing.
#pragma once

#include "verify/match.hpp"

namespace paceline {

// Every edge must lead to a later step; any two steps that touch the same memory, one of them
// writing, must be ordered by edges (inside a rank) or by edges and signals (where a rank touches a
// peer's buffer). A rank whose memory is touched must be in the collective: entered before, leaving
// after.
Verdict check_hazards(const World& world, const Partners& partners);

}  // namespace paceline
