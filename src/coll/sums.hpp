// Sums of many operands. One step adds at most kSourcesAtOnce of them, but all if the order is
// canonical.
#pragma once

#include <vector>

#include "ir/builder.hpp"

namespace paceline {

constexpr int kSourcesAtOnce = 16;

// target = the sources from left to right. Beyond kSourcesAtOnce of them each step's sum is the
// first operand of the next one: it is kept in `partial`, which must be none of the sources.
inline void sum(Builder& b, const std::vector<Segment>& sources, const Segment& target,
                const Segment& partial) {
  std::vector<Segment> some;
  for (const Segment& source : sources) {
    if (static_cast<int>(some.size()) == kSourcesAtOnce && !b.problem().canonical) {
      b.reduce(some, partial);
      some = {partial};
    }
    some.push_back(source);
  }
  if (some.size() > 1) b.reduce(some, target);
  else b.copy(some[0], target);
}

inline void sum(Builder& b, const std::vector<Segment>& sources, const Segment& target) {
  sum(b, sources, target, target);
}

// The same in equal groups of neighbours, and then the sums of those: a group need not wait for the
// operands of another. Two sources or more; beyond kSourcesAtOnce each group's sum has a slot.
inline void sum_in_groups(Builder& b, std::vector<Segment> sources, const Segment& target) {
  constexpr std::size_t most = kSourcesAtOnce;
  while (sources.size() > most && !b.problem().canonical) {
    const std::size_t count = sources.size(), groups = (count + most - 1) / most;
    std::vector<Segment> sums;
    for (std::size_t g = 0; g < groups; ++g) {
      const auto at = [&](std::size_t i) { return sources.begin() + long(i * count / groups); };
      sums.push_back(b.scratch(sources.front()));
      b.reduce(std::vector<Segment>(at(g), at(g + 1)), sums.back());
    }
    sources = sums;
  }
  b.reduce(sources, target);
}

}  // namespace paceline
