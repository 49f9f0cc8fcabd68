// CallSequence: the place of a call among a communicator's calls: the number of like calls just
// before it, and the call before those.
//
// Programs repeat themselves, so the same ranks are likely to be late at the same call in the same
// place. It is equal on all ranks, because they make the same calls.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/random.hpp"

namespace paceline {

class CallSequence {
 public:
  // Returns the key of the next call, if it is like this; equal for like calls at the same place.
  std::uint64_t key_of(std::uint64_t alike) const {
    const bool goes_on = alike == last_;
    const std::uint64_t in_row = goes_on ? std::min(in_row_ + 1, kMostInRow) : 0;
    return Random::mix(alike ^ Random::mix((goes_on ? before_ : last_) + 0x9e37 * in_row));
  }
  void count(std::uint64_t alike) {
    if (alike == last_) {
      in_row_ = std::min(in_row_ + 1, kMostInRow);
      return;
    }
    before_ = last_;
    last_ = alike;
    in_row_ = 0;
  }

 private:
  static constexpr std::uint64_t kMostInRow = 8;
  std::uint64_t last_ = 0, before_ = 0, in_row_ = 0;
};

}  // namespace paceline
