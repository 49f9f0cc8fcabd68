// Offset of a rank's clock from rank 0's: the shortest round trip of a ping-pong counts.
//
// Ranks that read the same clock need no message. For each other clock its first rank measures,
// when the program starts and when it ends: the clocks are assumed to drift linearly in between.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

// Messages of one number between two ranks, by the caller's means. They may throw.
class PingLink {
 public:
  virtual ~PingLink() = default;
  virtual void send(int peer, std::int64_t value) = 0;
  virtual std::int64_t receive(int peer) = 0;
};

using ClockHook = std::function<std::int64_t()>;   // nanoseconds

struct ClockOffset {
  std::int64_t at_ns = 0;       // own clock, when it was measured
  std::int64_t offset_ns = 0;   // own clock minus rank 0's
  std::int64_t error_ns = 0;    // at most: half of the shortest round trip
};

// Returns the offset as a line of a profile; `when` is "start" or "end".
std::string clock_note(std::string_view when, const ClockOffset& offset);

// Returns the ranks that measure, ascending: the first of each clock that is not rank 0's.
std::vector<int> clock_leaders(const std::vector<std::uint64_t>& clock_of_rank);

// Limits on such a rank. It goes on while round trips take longer than `good_ns`, up to `most`.
struct PingLimits {
  int least = 20, most = 500;
  std::int64_t good_ns = 20'000;
};
ClockOffset measure_offset(PingLink& link, const ClockHook& now, PingLimits limits = {});

// On rank 0: answers that rank until it has measured.
void answer_pings(PingLink& link, int peer, const ClockHook& now);

}  // namespace paceline
