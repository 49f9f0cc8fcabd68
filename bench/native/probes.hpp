// What the machine itself can do at this moment, measured by all ranks together.
#pragma once

#include <cstddef>
#include <functional>

#include "start_line.hpp"

namespace paceline::measure {

// How many ns a flag takes from rank 0 to rank 1 and back, on one cache line: the fastest of some
// series, since whoever else uses the machine only adds. The cores of a virtual machine move, and
// this says how near they are. 0 on the other ranks, where ranks take turns on the cores, and where
// there is but one. Collective.
double round_trip_ns(StartLine& line);

// Bytes per second of an action that reads and writes `bytes`, while all ranks do the same: the
// median of a few measurements. Collective.
double rate(StartLine& line, std::size_t bytes, const std::function<void()>& action);

}  // namespace paceline::measure
