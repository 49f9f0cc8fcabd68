// Locality: which memory and which cache are near a rank, and the groups of ranks that follow.
//
// A rank that may run on processors of one NUMA node only belongs to that node, and likewise to a
// last-level cache. Who may run anywhere belongs nowhere. What the system says is read once and
// told to all at start-up (start_card.hpp), so that all ranks know the same groups.
#pragma once

#include <string>
#include <vector>

namespace paceline {

struct Locality {
  int numa = -1;    // node of its memory; -1: not known, or several
  int cache = -1;   // of the last level, called by its first processor; -1 likewise
  bool operator==(const Locality&) const = default;
};

// Of one processor each, as the system describes them in this folder.
inline constexpr const char* kSystem = "/sys/devices/system/cpu";
std::vector<Locality> localities_of(const std::vector<int>& processors,
                                    const std::string& folder = kSystem);

// What processors have in common: the locality of a rank that may run on all of them.
Locality common_to(const std::vector<Locality>& processors);

// Ranks in groups of equal size.
struct Grouping {
  std::vector<int> of_rank;   // the group of each, numbered by their first ranks; empty: none
  std::string why;            // what they share, or why there are none
};

// By NUMA node, else by cache, where that makes at least two groups of equally many ranks, and of
// at least two.
Grouping grouping_of(const std::vector<Locality>& ranks);

}  // namespace paceline
