#include "trace/trace.hpp"

#include <algorithm>

namespace paceline {

double Trace::span_s() const {
  if (arrival_s.empty() || exit_s.empty()) return 0;
  return *std::max_element(exit_s.begin(), exit_s.end()) -
         *std::min_element(arrival_s.begin(), arrival_s.end());
}

}  // namespace paceline
