// fuse: a receive into scratch followed by the one reduce that reads it becomes one step.
//
// The transport then hands every arriving piece straight to the kernel: no scratch, one pass less
// over memory. A pass over the finished schedule, never an author's word; verify runs before and
// after it.
#pragma once

#include "ir/schedule.hpp"

namespace paceline {

Schedule fuse(Schedule schedule);

}  // namespace paceline
