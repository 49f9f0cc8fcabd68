#include "engine/notes.hpp"

#include <algorithm>
#include <atomic>

namespace paceline {
namespace {

constexpr double kTickS = 64e-9;   // unit of ages: 32 bits hold 4.5 minutes

std::uint32_t ticks(double seconds) {
  return static_cast<std::uint32_t>(std::clamp(seconds / kTickS, 0.0, 4294967295.0));
}

}  // namespace

Notes::Notes(int ranks, int rank, std::size_t messages)
    : ranks_(ranks),
      rank_(rank),
      words_(static_cast<std::size_t>(ranks)),
      room_(messages * (static_cast<std::size_t>(ranks) + 1)),
      sighted_s_(messages) {}

void Notes::begin(std::uint32_t word, double now_s) {
  std::fill(words_.begin(), words_.end(), 0);
  std::fill(sighted_s_.begin(), sighted_s_.end(), 0);
  words_[static_cast<std::size_t>(rank_)] = word | kKnown;
  entered_s_ = last_s_ = ended_s_ = now_s;
}

Part Notes::to_send(std::size_t message, double now_s) {
  std::uint32_t* const to = at(message);
  std::copy(words_.begin(), words_.end(), to);
  to[ranks_] = ticks(now_s - last_s_);
  return {reinterpret_cast<std::byte*>(to), bytes()};
}

Part Notes::to_receive(std::size_t message) {
  return {reinterpret_cast<std::byte*>(at(message)), bytes()};
}

void Notes::sighted(std::size_t message, double now_s) {
  if (sighted_s_[message] == 0) sighted_s_[message] = now_s;
}

bool Notes::take(int rank, std::uint32_t word) {
  std::uint32_t& known = words_[static_cast<std::size_t>(rank)];
  if (!(word & kKnown) || (known & kKnown)) return false;
  known = word;
  return true;
}

// Ages count from the arrival of the header: the message itself may take long. A header that was
// here before this rank entered counts from its entry. A message without new words gives no time,
// either: each forwarding makes a time later by a header's latency, without end in a call of many
// pieces.
void Notes::received(std::size_t message) {
  const std::uint32_t* const from = at(message);
  bool is_new = false;
  for (int r = 0; r < ranks_; ++r) is_new |= take(r, from[r]);
  if (!is_new) return;
  const double sighted_s = std::max(sighted_s_[message], entered_s_);
  last_s_ = std::max(last_s_, sighted_s - kTickS * from[ranks_]);
}

// Other ranks may read meanwhile and see the old or the new value; both are true.
void Notes::show(std::byte* shown) const {
  std::atomic_ref(*reinterpret_cast<double*>(shown)).store(last_s_, std::memory_order_relaxed);
  auto* const words = reinterpret_cast<std::uint32_t*>(shown + sizeof(double));
  for (int r = 0; r < ranks_; ++r)
    std::atomic_ref(words[r]).store(words_[static_cast<std::size_t>(r)],
                                    std::memory_order_relaxed);
}

void Notes::look(std::byte* shown, double now_s) {
  auto* const words = reinterpret_cast<std::uint32_t*>(shown + sizeof(double));
  bool is_new = false;
  for (int r = 0; r < ranks_; ++r)
    is_new |= take(r, std::atomic_ref(words[r]).load(std::memory_order_relaxed));
  if (!is_new) return;
  const double last_s =
      std::atomic_ref(*reinterpret_cast<double*>(shown)).load(std::memory_order_relaxed);
  last_s_ = std::max(last_s_, std::min(last_s, now_s));
}

void Notes::end(double now_s) { ended_s_ = now_s; }

bool Notes::is_complete() const {
  return std::all_of(words_.begin(), words_.end(), [](std::uint32_t w) { return w & kKnown; });
}

}  // namespace paceline
