// Circulant pattern: how many of the offsets 0, 1, ..., p - 1 a rank still holds after each round.
//
// A rank that holds `held` offsets keeps the first `kept` of them and ships the rest to the ranks
// kept, 2 kept, ... places on, in at most radix - 1 messages of at most `kept` offsets each.
// After ceil(log_radix p) rounds offset 0 is left. Backwards it spreads instead.
#pragma once

#include <algorithm>
#include <vector>

namespace paceline {

struct CirculantRound {
  int held;
  int kept;

  // Offsets at which the messages begin, and their lengths.
  std::vector<int> distances() const {
    std::vector<int> out;
    for (int d = kept; d < held; d += kept) out.push_back(d);
    return out;
  }
  int length(int distance) const { return std::min(kept, held - distance); }
};

inline std::vector<CirculantRound> circulant_rounds(int ranks, int radix) {
  std::vector<CirculantRound> rounds;
  for (int held = ranks; held > 1; held = rounds.back().kept)
    rounds.push_back({held, (held + radix - 1) / radix});
  return rounds;
}

// Number of messages that a rank sends in all rounds.
inline int circulant_messages(int ranks, int radix) {
  int count = 0;
  for (const CirculantRound& round : circulant_rounds(ranks, radix))
    count += static_cast<int>(round.distances().size());
  return count;
}

}  // namespace paceline
