#include "start_line.hpp"

#include <chrono>
#include <string>
#include <thread>

#include "base/error.hpp"

namespace paceline::measure {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kLimit = 300 * kSecond;  // a rank that is missing so long has died
constexpr std::int64_t kSettled = 200'000;  // ns from agreement to start: all ranks read it then
constexpr std::int64_t kOversubscribed = 3'000'000;  // the same if ranks take turns
constexpr std::int64_t kHot = 2'000, kHotPerRank = 500;  // the same if all spin
constexpr std::int64_t kSpin = 150'000;  // ns before the start: a core just woken is late and cold
constexpr int kLooksPerCheck = 1000;
constexpr int kLooksPerYield = 100'000;  // a peer that is awaited so long probably has no core

// Spinning would use up this process's share of a busy core, and libraries whose calls sleep and
// wake would pay for that in whole time slices.
void rest(std::int64_t ns = 20'000) { std::this_thread::sleep_for(std::chrono::nanoseconds(ns)); }

void wait_until(std::int64_t moment, bool spin) {
  const std::int64_t left = moment - now_ns() - (spin ? kSpin : 0);
  if (left > 0) rest(left);
  while (now_ns() < moment) {
  }
}

}  // namespace

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

StartLine::StartLine(void* memory, int rank, int ranks, bool oversubscribed, void (*idle)())
    : lanes_(static_cast<Lane*>(memory)),
      rank_(rank),
      ranks_(ranks),
      oversubscribed_(oversubscribed),
      idle_(idle) {
  require(reinterpret_cast<std::uintptr_t>(memory) % alignof(Lane) == 0,
          "start line: its memory is not aligned to ", alignof(Lane), " bytes");
}

void StartLine::meet(Wait wait) {
  const std::int64_t round = 1 + lanes_[kSeats + std::size_t(rank_)].word.fetch_add(1);
  const std::int64_t deadline = now_ns() + kLimit;
  int looks = 0;
  for (int peer = 0; peer < ranks_; ++peer) {
    while (lanes_[kSeats + std::size_t(peer)].word.load(std::memory_order_acquire) < round) {
      ++looks;
      if (wait == Wait::asleep)
        rest();
      else if (looks % kLooksPerYield == 0)
        std::this_thread::yield();
      if (looks % (wait == Wait::asleep ? kLooksPerCheck : kLooksPerYield) != 0) continue;
      if (idle_) idle_();
      if (now_ns() > deadline)
        fail(Fault::timeout, "bench: rank ", rank_, " of ", ranks_, " waits for rank ", peer,
             ", of which there has been no sign for ", kLimit / kSecond,
             " s; it has ended or hangs. Look at its output.");
    }
  }
}

// Rank 0 sets the moment. All ranks have read it before rank 0 sets the next one, since it meets
// them first.
std::int64_t StartLine::agree(Wait wait, std::int64_t ahead) {
  std::atomic<std::int64_t>& moment = lanes_[kMoment].word;
  const std::int64_t before = moment.load();
  meet(wait);
  if (rank_ == 0) moment.store(now_ns() + ahead);
  std::int64_t agreed = 0;
  for (int looks = 1; (agreed = moment.load(std::memory_order_acquire)) == before; ++looks)
    if (wait == Wait::asleep)
      rest();
    else if (looks % kLooksPerYield == 0)
      std::this_thread::yield();
  wait_until(agreed, !oversubscribed_);
  return agreed;
}

void StartLine::barrier() { meet(Wait::asleep); }

std::int64_t StartLine::start() { return agree(Wait::asleep, oversubscribed_ ? kOversubscribed :
                                               kSettled); }

std::int64_t StartLine::start_hot() {
  return oversubscribed_ ? start() : agree(Wait::spinning, kHot + kHotPerRank * ranks_);
}

}  // namespace paceline::measure
