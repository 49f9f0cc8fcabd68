// compile: from a call and the choice made for it to what the engine runs.
#pragma once

#include <cstddef>
#include <string>

#include "engine/compiled_schedule.hpp"
#include "runtime/call.hpp"
#include "tune/choose.hpp"

namespace paceline {

// As a person reads it: "ring, 8 segments, 6 at a time: why".
std::string describe(const Choice& choice);

// Bytes for slots in each rank's staging buffer, and whether all ranks reach it, or its node's.
struct StagingLimits {
  std::size_t bytes = 0;
  bool one_node = false;
};

// Throws a refusal where the call needs a longer slot or more signals than staging buffers have;
// equal on all ranks.
CompiledSchedule compile(const Choice& choice, const Problem& problem, const Layout& layout,
               const Call& call, const StagingLimits& staging);

}  // namespace paceline
