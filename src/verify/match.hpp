// match: pairs each send with its receive, in a world of schedules.
#pragma once

#include <string>
#include <vector>

#include "verify/verify.hpp"

namespace paceline {

struct StepId {
  int rank = -1;
  std::uint32_t step = 0;
};

// For every rank and step the step at the other end of its message or signal; rank -1 for local
// steps.
using Partners = std::vector<std::vector<StepId>>;

// Fills `partners`; says what does not fit together.
Verdict match(const World& world, Partners& partners);

std::string name(const World& world, StepId id);   // "rank 3 step 7 (recv)"

}  // namespace paceline
