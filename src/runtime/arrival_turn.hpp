// ArrivalTurn: one call's part in learning when its ranks come (runtime/arrivals.hpp).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace paceline {

struct ArrivalSite;   // arrivals.cpp: calls that are alike

struct ArrivalTurn {
  std::shared_ptr<ArrivalSite> site;   // null: nothing is known of such calls
  std::uint64_t key = 0;
  std::vector<int> late;        // positions of the ranks taken for late, the latest one last
  std::uint64_t digest = 0;     // hash of `late`; 0: empty
  std::vector<int> before;      // `late` of the previous such call, which this one teaches about
};

}  // namespace paceline
