// Multicube: a few ranks along every dimension, at most `radix`. If the ranks have no such factors,
// each corner of a smaller cube stands for a few consecutive ranks, led by the first.
#pragma once

#include <algorithm>
#include <vector>

namespace paceline {

class Multicube {
 public:
  // Takes the cube that fits in which a rank sends the fewest messages, folding included; of equal
  // ones the largest.
  Multicube(int ranks, int radix) : ranks_(ranks) {
    int fewest = 0;
    for (int corners = ranks; 2 * corners > ranks; --corners) {
      const std::vector<int> sizes = factors(corners, radix);
      if (sizes.empty() && corners > 1) continue;
      int messages = 2 * ((ranks + corners - 1) / corners - 1);
      for (int size : sizes) messages += size - 1;
      if (corners_ > 0 && messages >= fewest) continue;
      fewest = messages;
      corners_ = corners;
      sizes_ = sizes;
    }
  }

  int corners() const { return corners_; }
  // Number of ranks along each dimension, from the one in which consecutive corners differ.
  const std::vector<int>& sizes() const { return sizes_; }

  // A corner stands for the ranks [leader(c), leader(c + 1)).
  int leader(int corner) const {
    return corner * (ranks_ / corners_) + std::min(corner, ranks_ % corners_);
  }
  int corner_of(int rank) const {
    const int size = ranks_ / corners_, larger = ranks_ % corners_ * (size + 1);
    return rank < larger ? rank / (size + 1) : ranks_ % corners_ + (rank - larger) / size;
  }
  // Most ranks that a corner stands for.
  int most() const { return (ranks_ + corners_ - 1) / corners_; }

  // The leaders along a dimension, from the next one round to the one before.
  std::vector<int> others(int corner, std::size_t dimension) const {
    int unit = 1;
    for (std::size_t d = 0; d < dimension; ++d) unit *= sizes_[d];
    const int size = sizes_[dimension], digit = corner / unit % size;
    std::vector<int> out;
    for (int i = 1; i < size; ++i)
      out.push_back(leader(corner + ((digit + i) % size - digit) * unit));
    return out;
  }

 private:
  // The largest factors first, none above the radix; empty if there are no such factors.
  static std::vector<int> factors(int n, int radix) {
    std::vector<int> out;
    while (n > 1) {
      int size = std::min(n, radix);
      while (size > 1 && n % size != 0) --size;
      if (size < 2) return {};
      out.push_back(size);
      n /= size;
    }
    return out;
  }

  int ranks_;
  int corners_ = 0;
  std::vector<int> sizes_;
};

}  // namespace paceline
