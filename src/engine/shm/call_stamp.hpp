// CallStamp: the description of a rank's current call on its flag line (transport/staging.hpp).
//
// Peers read the line as a seqlock, since the owner may go on and overwrite it. The functions are
// templates on the line, so that tests run the same code in all orders that memory allows
// (tests/unit/litmus_test.cpp).
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "transport/staging.hpp"

namespace paceline {

struct CallStamp {
  Fingerprint fingerprint;
  std::uint64_t past = 0;   // number << 32 | digest of the channel's calls, up to this one
  std::uint32_t number() const {   // among all calls of the communicator
    return static_cast<std::uint32_t>(past >> 32);
  }
  // Without branches, since stamps are nearly always equal.
  bool operator==(const CallStamp& other) const {
    return ((fingerprint.what ^ other.fingerprint.what) |
            (fingerprint.count ^ other.fingerprint.count) | (past ^ other.past)) == 0;
  }
};

// turn_begun: a line's turn while its stamp is being written. turn_of: after so many signals.
constexpr std::uint64_t turn_begun(std::uint64_t call) { return call << 16; }
constexpr std::uint64_t turn_of(std::uint64_t call, std::uint64_t signals) {
  return turn_begun(call) | (1 + signals);
}

inline void fence(const FlagLine&, std::memory_order order) { std::atomic_thread_fence(order); }

// Writes the stamp; it is whole with the first signal. Peers take the new turn as the end of this
// rank's previous call, so that reads of their slots in that call must come before it.
template <class Line>
void show(Line& line, std::uint64_t call, const CallStamp& stamp) {
  line.turn.store(turn_begun(call), std::memory_order_release);
  fence(line, std::memory_order_release);
  line.what.store(stamp.fingerprint.what, std::memory_order_relaxed);
  line.count.store(stamp.fingerprint.count, std::memory_order_relaxed);
  line.past.store(stamp.past, std::memory_order_relaxed);
}

template <class Line>
CallStamp stamp_in(const Line& line) {
  return {{line.what.load(std::memory_order_relaxed), line.count.load(std::memory_order_relaxed)},
          line.past.load(std::memory_order_relaxed)};
}

// Returns the stamp of this call; nothing if the line shows another call or half a stamp.
template <class Line>
std::optional<CallStamp> whole_stamp_in(const Line& line, std::uint64_t call) {
  const std::uint64_t turn = line.turn.load(std::memory_order_acquire);
  const CallStamp stamp = stamp_in(line);
  fence(line, std::memory_order_acquire);
  const std::uint64_t now = line.turn.load(std::memory_order_relaxed);
  if (turn < turn_of(call, 0) || now >> 16 != call) return {};
  return stamp;
}

}  // namespace paceline
