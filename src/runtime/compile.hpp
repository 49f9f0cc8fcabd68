// compile: makes the schedule that the engine runs, from a call and its choice.
#pragma once

#include <cstddef>
#include <string>

#include "engine/compiled_schedule.hpp"
#include "runtime/call.hpp"
#include "tune/choose.hpp"

namespace paceline {

// Returns text such as "ring, 8 segments, 6 at a time: why".
std::string describe(const Choice& choice);

// Limits of each rank's staging buffer.
struct StagingLimits {
  std::size_t bytes = 0;   // for slots
  bool one_node = false;   // all ranks reach the buffer; false: the ranks of its node do
};

// Throws a refusal, the same on all ranks, if the call needs a longer slot or more signals than
// staging buffers have.
CompiledSchedule compile(const Choice& choice, const Problem& problem, const Layout& layout,
               const Call& call, const StagingLimits& staging);

}  // namespace paceline
