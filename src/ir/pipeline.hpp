// pipeline: the same collective on slices of the message, several of them under way at once.
//
// Segment s is a copy of the schedule on the s-th slice of every unit. It starts when segment
// s - window has ended on this rank, whose lane (s mod window) and scratch it takes over. Messages
// are numbered on through a lane: copies that run at different speed on two ranks cannot mix.
// The tail of a schedule (Builder::whole) is cut like the rest, or waits for what it needs of all
// segments and handles them together: fewer messages, but it no longer overlaps with the sums of
// later segments.
// Splitting one allreduce into n concurrent ones, the linear pipeline (a chain, pipelined) and the
// sub-chunks of a ring are this operation.
#pragma once

#include <cstddef>

#include "ir/schedule.hpp"

namespace paceline {

enum class Tail { cut, whole };

// Throws a usage error unless 1 <= window and 1 <= segments.
Schedule pipeline(Schedule one, int segments, int window, Tail tail = Tail::cut);

}  // namespace paceline
