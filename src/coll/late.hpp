// Late: the ranks that are there when a collective begins, and those predicted to enter last.
#pragma once

#include <algorithm>
#include <vector>

#include "ir/problem.hpp"

namespace paceline {

// All ranks, in two sides. If all are late, the first of them counts as early and waits for the
// others.
struct Sides {
  std::vector<int> early;   // in rank order
  std::vector<int> late;    // the latest one last
  bool is_late = false;     // this rank is
  int at = 0;               // its place on its side

  explicit Sides(const Problem& problem) : late(problem.late) {
    if (static_cast<int>(late.size()) == problem.ranks) late.erase(late.begin());
    for (int rank = 0; rank < problem.ranks; ++rank)
      if (std::find(late.begin(), late.end(), rank) == late.end()) early.push_back(rank);
    const auto place = std::find(late.begin(), late.end(), problem.rank);
    is_late = place != late.end();
    at = static_cast<int>(is_late ? place - late.begin()
                                  : std::find(early.begin(), early.end(), problem.rank) -
                                        early.begin());
  }

  int waiting() const { return static_cast<int>(early.size()); }
  int missing() const { return static_cast<int>(late.size()); }
  int early_at(int place) const {   // from -waiting() on, and around
    return early[static_cast<std::size_t>((place + waiting()) % waiting())];
  }
  int late_at(int place) const { return late[static_cast<std::size_t>(place)]; }

  // All ranks, in the order in which they are expected to enter.
  std::vector<int> in_order() const {
    std::vector<int> all = early;
    all.insert(all.end(), late.begin(), late.end());
    return all;
  }
};

}  // namespace paceline
