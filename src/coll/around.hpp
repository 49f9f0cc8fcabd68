// Around: one block per rank, counted from a rank onwards and around from the last rank to rank 0.
#pragma once

#include <algorithm>
#include <vector>

#include "ir/builder.hpp"

namespace paceline {

class Around {
 public:
  // The blocks of a buffer that has one for every rank.
  Around(const Segment& all, int rank)
      : rank_(rank), ranks_(all.blocks), to_end_(Builder::part(all, rank, ranks_ - rank)),
        from_zero_(Builder::part(all, 0, rank)) {}

  // Working memory for the blocks at the offsets [first, last), and for no others.
  Around scratch(Builder& b, int first, int last) const {
    Around out = *this;
    out.to_end_.blocks = out.from_zero_.blocks = 0;
    for (const Segment& stretch : at(first, last))
      (stretch.first >= rank_ ? out.to_end_ : out.from_zero_) = b.scratch(stretch);
    return out;
  }

  // The blocks at the offsets [first, last): at most two stretches.
  std::vector<Segment> at(int first, int last) const {
    const int wrap = ranks_ - rank_;
    std::vector<Segment> out;
    if (first < std::min(last, wrap))
      out.push_back(Builder::part(to_end_, rank_ + first, std::min(last, wrap) - first));
    if (std::max(first, wrap) < last)
      out.push_back(Builder::part(from_zero_, std::max(first, wrap) - wrap,
                                  last - std::max(first, wrap)));
    return out;
  }

 private:
  int rank_, ranks_;
  Segment to_end_, from_zero_;   // of `rank_` and those after it; of those before it
};

}  // namespace paceline
