// CallSequence: the place of a call among a communicator's calls: the number of like calls just
// before it, and the call before those. Once ranks came late to one of these like calls, it is the
// number of calls since then: so a step of many like calls has places, too.
//
// Programs repeat themselves, so the same ranks are likely to be late at the same call in the same
// place. It is equal on all ranks, because they make the same calls and learn of the same ones.
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
    std::uint64_t in_row = goes_on ? std::min(in_row_ + 1, kMostInRow) : 0;
    const std::uint64_t since_late = calls_ + 1 - late_at_;
    if (goes_on && late_at_ > 0 && since_late <= in_row_ + 1)
      in_row = kMostInRow + std::min(since_late, kFarthest);
    return Random::mix(alike ^ Random::mix((goes_on ? before_ : last_) + 0x9e37 * in_row));
  }
  void count(std::uint64_t alike) {
    ++calls_;
    if (alike == last_) {
      ++in_row_;
      return;
    }
    before_ = last_;
    last_ = alike;
    in_row_ = 0;
  }
  std::uint64_t calls() const { return calls_; }   // counted so far: the number of the last one
  // Learns that ranks came late to the call of this number.
  void late_at(std::uint64_t call) { late_at_ = std::max(late_at_, call); }

 private:
  static constexpr std::uint64_t kMostInRow = 8, kFarthest = 240;
  std::uint64_t last_ = 0, before_ = 0, in_row_ = 0, calls_ = 0, late_at_ = 0;
};

}  // namespace paceline
