// How far a rank's clock is from rank 0's: ping-pong, of which the shortest round trip counts.
//
// Ranks that read the same clock need no message. Of each other clock one rank measures, the first,
// when the program starts and when it ends: between the two the clocks are taken to drift linearly.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

// Messages of one number between two ranks, as the caller has them. They may throw.
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

// As a line of a profile; `when` is "start" or "end".
std::string clock_note(std::string_view when, const ClockOffset& offset);

// The ranks that measure, in order: the first of each clock that is not rank 0's.
std::vector<int> clock_leaders(const std::vector<std::uint64_t>& clock_of_rank);

// On one of those ranks. Goes on while round trips take longer than `good_ns`, for at most `most`.
struct PingLimits {
  int least = 20, most = 500;
  std::int64_t good_ns = 20'000;
};
ClockOffset measure_offset(PingLink& link, const ClockHook& now, PingLimits limits = {});

// On rank 0: answers that rank until it has measured.
void answer_pings(PingLink& link, int peer, const ClockHook& now);

}  // namespace paceline
