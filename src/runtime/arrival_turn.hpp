// ArrivalTurn: one call's part in learning when its ranks come (runtime/arrivals.hpp).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace paceline {

struct ArrivalSite;   // arrivals.cpp: calls at one place

// A call of which a later one tells.
struct ToldCall {
  std::shared_ptr<ArrivalSite> site;   // null: it tells of none
  std::uint64_t call = 0;              // its number in the sequence
  std::vector<int> units = {};         // that it took for late
  std::int64_t waited_ns = 0, rest_ns = 0;   // of this rank
};

struct ArrivalTurn {
  std::shared_ptr<ArrivalSite> site;   // null: the call has no notes
  std::uint64_t call = 0;       // its number in the sequence
  std::vector<int> units;       // that it takes for late, the latest one last
  std::vector<int> late;        // positions of their ranks
  std::uint64_t digest = 0;     // hash of `late`; 0: empty
  ToldCall told;
};

}  // namespace paceline
