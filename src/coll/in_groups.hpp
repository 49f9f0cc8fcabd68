// Many operands combined, but only so many by one step: in equal groups, from left to right, and
// their sums again. Where the order is canonical, all by one step.
#pragma once

#include <vector>

#include "ir/builder.hpp"

namespace paceline {

inline constexpr std::size_t kMostSources = 16;   // of one step

// Two sources or more; beyond kMostSources with working memory for the sum of every group.
inline void reduce_in_groups(Builder& b, std::vector<Segment> sources, const Segment& target) {
  while (sources.size() > kMostSources && !b.problem().canonical) {
    const std::size_t count = sources.size(), groups = (count + kMostSources - 1) / kMostSources;
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
