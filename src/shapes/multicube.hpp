// Multicube: radix ranks along every dimension. Where the ranks are no power of the radix, each
// corner stands for a few consecutive ranks, the first of which is its leader.
#pragma once

#include <algorithm>
#include <vector>

namespace paceline {

struct Multicube {
  int ranks;
  int radix;

  int corners() const {   // the largest power of the radix among the ranks
    int n = 1;
    while (n <= ranks / radix) n *= radix;
    return n;
  }

  // A corner stands for the ranks [leader(c), leader(c + 1)).
  int leader(int corner) const {
    return corner * (ranks / corners()) + std::min(corner, ranks % corners());
  }
  int corner_of(int rank) const {
    const int size = ranks / corners(), larger = ranks % corners() * (size + 1);
    return rank < larger ? rank / (size + 1) : ranks % corners() + (rank - larger) / size;
  }
  // For how many a corner stands at most.
  int most() const { return (ranks + corners() - 1) / corners(); }

  // The leaders along the dimension in which corners differ by multiples of `unit`, from the next
  // one round to the one before.
  std::vector<int> others(int corner, int unit) const {
    const int digit = corner / unit % radix;
    std::vector<int> out;
    for (int i = 1; i < radix; ++i)
      out.push_back(leader(corner + ((digit + i) % radix - digit) * unit));
    return out;
  }
};

}  // namespace paceline
