// What the machine itself can do at this moment, measured by all ranks together.
#pragma once

#include <cstddef>

#include "measure/start_line.hpp"

namespace paceline::measure {

// How many ns a flag takes from rank 0 to rank 1 and back, on one cache line: the fastest of some
// series, since whoever else uses the machine only adds. The cores of a virtual machine move, and
// this says how near they are. 0 on the other ranks, where ranks take turns on the cores, and where
// there is but one. Collective.
double round_trip_ns(StartLine& line);

// Bytes per second that this rank reads and writes while all ranks do the same.
struct Rates {
  double add = 0;   // a + b into c, float32: 3 bytes for each byte of an array
  double copy = 0;  // a into c: 2 bytes
};

// On three arrays of so many bytes per rank, with ordinary stores. Collective.
Rates memory_rates(StartLine& line, std::size_t bytes);

}  // namespace paceline::measure
