// Probes of the machine's own speed at this moment, measured by all ranks together.
#pragma once

#include <cstddef>
#include <functional>

#include "start_line.hpp"

namespace paceline::measure {

// Returns the ns that a flag takes from rank 0 to rank 1 and back, on one cache line: the least of
// some series, since other load only adds. It shows how near the two cores are, which move on a
// virtual machine. 0 on the other ranks, if ranks take turns on the cores, and if there is only one
// rank. Collective.
double round_trip_ns(StartLine& line);

// Bytes per second of an action that reads and writes `bytes`, while all ranks do the same: the
// median of a few measurements. Collective.
double rate(StartLine& line, std::size_t bytes, const std::function<void()>& action);

}  // namespace paceline::measure
