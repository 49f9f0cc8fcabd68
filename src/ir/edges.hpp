// derive_edges: the edges between steps of one schedule, from what each step reads and writes.
#pragma once

#include "ir/schedule.hpp"

namespace paceline {

// Orders the steps of an unpipelined schedule by the conflict rule of base/hazard.hpp, in their
// present sequence; a signal follows everything before it, everything follows a wait.
void derive_edges(Schedule& schedule);

// Lists for every slot the shapes in which the steps use it.
void derive_slots(Schedule& schedule);

// True if the step writes its i-th segment; the others it reads.
bool writes(Kind kind, std::size_t index);

}  // namespace paceline
