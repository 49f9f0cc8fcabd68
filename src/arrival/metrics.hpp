// Metrics of an arrival pattern: the imbalance of the ranks' entries into one collective call.
//
// Source: P. Alizadeh et al., Efficient Process Arrival Pattern Aware Collective Communication for
// Deep Learning, EuroMPI 2022, equations 2.1 to 2.3, which follow A. Faraj et al.
#pragma once

#include <span>

namespace paceline {

// Times in the unit of the arrivals.
struct Imbalance {
  double worst = 0;     // Omega (2.1): the last arrival minus the first
  double average = 0;   // Delta (2.3): the mean distance from the mean arrival (2.2)
};

// `arrivals`: each rank's entry time, on one clock. With none or one the imbalance is 0.
Imbalance imbalance_of(std::span<const double> arrivals);

}  // namespace paceline
