// CallSequence: what place a call has among the calls of a communicator: how many like it came just
// before, and what came before those.
//
// Programs repeat themselves, so the same call at the same place is likely to find the same ranks
// late. Equal on all ranks, since they make the same calls.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/random.hpp"

namespace paceline {

class CallSequence {
 public:
  // Of the next call, if it is like this: the same for calls alike at the same place.
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
