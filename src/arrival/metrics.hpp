// Metrics of an arrival pattern: how far apart the ranks of one collective call enter it.
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

// `arrivals`: when each rank entered, on one clock. None, or one: no imbalance.
Imbalance imbalance_of(std::span<const double> arrivals);

// The same as multiples of the time that a message of the call's size takes; 0 where that time is
// not positive, since a factor has no meaning there.
Imbalance factors_of(const Imbalance& imbalance, double message_time);

}  // namespace paceline
