#include "profile/clocks.hpp"

#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

#include <doctest/doctest.h>

namespace paceline {
namespace {

using Clocks = std::vector<std::uint64_t>;

// Simulated time: a message takes `there` or `back`, and reading a clock takes none. The whole
// exchange runs in one thread, rank 0 inside rank 1's receive.
struct Feigned : PingLink {
  std::int64_t time = 1'000'000;
  std::int64_t shift, there, back;
  double drift = 0;           // of rank 1's clock, seconds per second
  int rounds = 0;
  std::int64_t answer = 0;
  std::int64_t delays = 0;    // every other round takes that much longer

  Feigned(std::int64_t s, std::int64_t t, std::int64_t b) : shift(s), there(t), back(b) {}
  void send(int, std::int64_t value) override {
    if (value == 0) return;
    ++rounds;
    time += there + (rounds % 2 == 0 ? delays : 0);
    answer = time;
  }
  std::int64_t receive(int) override {
    time += back;
    return answer;
  }
  std::int64_t now() const { return time + shift + std::int64_t(drift * double(time)); }
};

std::int64_t ns() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

// Two threads, each with a mailbox.
struct Mailboxes {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<int, std::deque<std::int64_t>> to;
};
struct ThreadLink : PingLink {
  Mailboxes& boxes;
  int me;
  ThreadLink(Mailboxes& b, int m) : boxes(b), me(m) {}
  void send(int peer, std::int64_t value) override {
    const std::lock_guard lock(boxes.mutex);
    boxes.to[peer].push_back(value);
    boxes.changed.notify_all();
  }
  std::int64_t receive(int) override {
    std::unique_lock lock(boxes.mutex);
    boxes.changed.wait(lock, [&] { return !boxes.to[me].empty(); });
    const std::int64_t value = boxes.to[me].front();
    boxes.to[me].pop_front();
    return value;
  }
};

}  // namespace

TEST_CASE("clock_leaders: the first rank of every clock but rank 0's") {
  CHECK(clock_leaders({}).empty());
  CHECK(clock_leaders(Clocks{7}).empty());
  CHECK(clock_leaders(Clocks{7, 7, 7}).empty());
  CHECK(clock_leaders(Clocks{7, 8, 7, 8, 9}) == std::vector<int>{1, 4});
}

TEST_CASE("measure_offset: exact where both ways take the same time, half a trip off at most") {
  for (const std::int64_t shift : {0, 123'456'789, -987'654'321}) {
    Feigned even(shift, 5000, 5000);
    const ClockOffset found = measure_offset(even, [&] { return even.now(); });
    CHECK(found.offset_ns == shift);
    CHECK(found.error_ns == 5000);
    CHECK(even.rounds == 20);
    Feigned uneven(shift, 1000, 9000);
    const ClockOffset other = measure_offset(uneven, [&] { return uneven.now(); });
    CHECK(std::abs(other.offset_ns - shift) <= other.error_ns);
    CHECK(other.offset_ns != shift);
  }
}

TEST_CASE("measure_offset: the shortest trip counts, and long ones are tried again") {
  Feigned link(42'000, 10'000, 10'000);
  link.delays = 5'000'000;   // a mean of all trips would be off by a millisecond
  CHECK(measure_offset(link, [&] { return link.now(); }).offset_ns == 42'000);
  Feigned slow(0, 1'000'000, 1'000'000);
  measure_offset(slow, [&] { return slow.now(); });
  CHECK(slow.rounds == 500);
}

TEST_CASE("measure_offset: a clock that is shifted by a hook is found within 100 us") {
  constexpr std::int64_t kShift = 3'000'000'000'123;
  Mailboxes boxes;
  ThreadLink zero(boxes, 0), one(boxes, 1);
  std::thread answers([&] { answer_pings(zero, 1, ns); });
  const ClockOffset found = measure_offset(one, [] { return ns() + kShift; });
  answers.join();
  // The claimed error holds on any machine; an oversubscribed one may be slow to answer.
  CHECK(std::abs(found.offset_ns - kShift) <= found.error_ns);
  if (found.error_ns < 100'000) CHECK(std::abs(found.offset_ns - kShift) < 100'000);
}

}  // namespace paceline
