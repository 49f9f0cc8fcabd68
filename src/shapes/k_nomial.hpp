// K-nomial tree over positions 0..p-1 with root 0: the parent of v lacks v's lowest digit that is
// not 0, to the base of the radix.
#pragma once

#include <vector>

#include "shapes/binomial.hpp"

namespace paceline {

struct KNomialTree {
  int ranks;
  int radix;

  int parent(int v) const {   // of v > 0
    int unit = 1;
    while (v / unit % radix == 0) unit *= radix;
    return v - v / unit % radix * unit;
  }

  std::vector<int> children(int v) const {   // farthest level first, nearest child of it first
    int unit = 1;
    while (unit < ranks && v / unit % radix == 0) unit *= radix;
    std::vector<int> out;
    for (unit /= radix; unit > 0; unit /= radix)
      for (int digit = 1; digit < radix && v + digit * unit < ranks; ++digit)
        out.push_back(v + digit * unit);
    return out;
  }
};

}  // namespace paceline
