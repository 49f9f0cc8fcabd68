#include "arrival/metrics.hpp"

#include <algorithm>
#include <cmath>

namespace paceline {

// Distances from the first arrival: sums of absolute times would lose the microseconds of a machine
// that has been up for months.
Imbalance imbalance_of(std::span<const double> arrivals) {
  if (arrivals.empty()) return {};
  const auto [first, last] = std::minmax_element(arrivals.begin(), arrivals.end());
  const double ranks = static_cast<double>(arrivals.size());
  double sum = 0;
  for (double arrival : arrivals) sum += arrival - *first;
  const double mean = sum / ranks;
  double distance = 0;
  for (double arrival : arrivals) distance += std::abs(arrival - *first - mean);
  return {*last - *first, distance / ranks};
}

}  // namespace paceline
