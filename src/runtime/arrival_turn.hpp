// ArrivalTurn: what one call has to do with learning when its ranks come (runtime/arrivals.hpp).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace paceline {

struct ArrivalSite;   // arrivals.cpp: calls that are alike

struct ArrivalTurn {
  std::shared_ptr<ArrivalSite> site;   // null: nothing is known, yet or ever
  std::uint64_t key = 0;
  std::vector<int> late;        // positions of the ranks taken for late, the latest one last
  std::uint64_t digest = 0;     // of `late`; 0: it is empty
  std::vector<int> before;      // `late` of the call before, the one that is learned from
};

}  // namespace paceline
