#include "arrival/notes.hpp"

#include <algorithm>
#include <atomic>

namespace paceline {
namespace {

constexpr double kTickS = 64e-9;   // unit of ages: 32 bits hold 4.5 minutes
constexpr std::uint32_t kRankBits = 0xffff;

std::uint32_t ticks(double seconds) {
  return static_cast<std::uint32_t>(std::clamp(seconds / kTickS, 0.0, 4294967295.0));
}

}  // namespace

Notes::Notes(int ranks, int rank, std::size_t messages)
    : rank_(rank),
      last_(rank),
      is_heard_of_(static_cast<std::size_t>(ranks)),
      room_(messages * (1 + ArrivalWords::kWords)),
      sighted_s_(messages) {}

void Notes::begin(double now_s) {
  std::fill(sighted_s_.begin(), sighted_s_.end(), 0);
  std::fill(is_heard_of_.begin(), is_heard_of_.end(), false);
  words_ = own_;
  last_ = rank_;
  is_heard_of_[static_cast<std::size_t>(rank_)] = true;
  entered_s_ = last_s_ = ended_s_ = now_s;
}

Part Notes::to_send(std::size_t message, double now_s) {
  std::uint32_t* const to = at(message);
  to[0] = ticks(now_s - last_s_);
  for (std::size_t i = 0; i < ArrivalWords::kWords; ++i) to[1 + i] = words_.word(i);
  to[1] |= static_cast<std::uint32_t>(last_);
  return {reinterpret_cast<std::byte*>(to), kBytes};
}

Part Notes::to_receive(std::size_t message) {
  return {reinterpret_cast<std::byte*>(at(message)), kBytes};
}

void Notes::sighted(std::size_t message, double now_s) {
  if (sighted_s_[message] == 0) sighted_s_[message] = now_s;
}

bool Notes::is_news(std::uint32_t word) {
  const std::uint32_t rank = word & kRankBits;
  if (rank >= is_heard_of_.size() || is_heard_of_[rank]) return false;
  return is_heard_of_[rank] = true;
}

void Notes::entered(int rank, double when_s) {
  if (when_s <= last_s_) return;
  last_ = rank;
  last_s_ = when_s;
}

// Ages count from the arrival of the header: the message itself may take long. A header that was
// here before this rank entered counts from its entry. Only each rank's first time counts:
// each forwarding makes it later by a header's latency, without end in a call of many pieces.
void Notes::received(std::size_t message) {
  const std::uint32_t* const from = at(message);
  ArrivalWords words;
  for (std::size_t i = 0; i < ArrivalWords::kWords; ++i) words.set_word(i, from[1 + i]);
  words.set_word(0, from[1] & ~kRankBits);
  words_.merge(words);
  if (!is_news(from[1])) return;
  const double sighted_s = std::max(sighted_s_[message], entered_s_);
  entered(static_cast<int>(from[1] & kRankBits), sighted_s - kTickS * from[0]);
}

// Another rank may read meanwhile. It reads in the opposite order: so it finds each unit, which
// moves only towards the end, and with a rank the time at which that rank or a later one entered.
void Notes::show(std::byte* shown) const {
  std::atomic_ref(*reinterpret_cast<double*>(shown)).store(last_s_, std::memory_order_relaxed);
  auto* const words = reinterpret_cast<std::uint32_t*>(shown + sizeof(double));
  for (std::size_t i = ArrivalWords::kWords; i-- > 0;)
    std::atomic_ref(words[i]).store(
        words_.word(i) | (i == 0 ? static_cast<std::uint32_t>(last_) : 0),
        std::memory_order_release);
}

void Notes::look(std::byte* shown, double now_s) {
  auto* const words = reinterpret_cast<std::uint32_t*>(shown + sizeof(double));
  ArrivalWords theirs;
  for (std::size_t i = 0; i < ArrivalWords::kWords; ++i)
    theirs.set_word(i, std::atomic_ref(words[i]).load(std::memory_order_acquire));
  const std::uint32_t first = theirs.word(0);
  theirs.set_word(0, first & ~kRankBits);
  words_.merge(theirs);
  if (!is_news(first)) return;
  const double last_s =
      std::atomic_ref(*reinterpret_cast<double*>(shown)).load(std::memory_order_relaxed);
  entered(static_cast<int>(first & kRankBits), std::min(last_s, now_s));
}

void Notes::end(double now_s) { ended_s_ = now_s; }

}  // namespace paceline
