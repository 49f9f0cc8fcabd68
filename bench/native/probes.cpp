#include "probes.hpp"

#include <algorithm>
#include <thread>
#include <vector>

namespace paceline::measure {
namespace {

constexpr int kRounds = 500, kSeries = 21;
// Nanoseconds of a measurement: long enough for the clock, short enough to be repeated.
constexpr std::int64_t kShortest = 1'000'000;
constexpr int kRepeats = 7;

double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ptrdiff_t(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The other rank answers within a thousand looks, unless it has lost its core.
void await(const std::atomic<std::int64_t>& flag, std::int64_t value) {
  for (int looks = 0; flag.load(std::memory_order_acquire) != value; ++looks)
    if (looks >= 100'000) std::this_thread::yield();
}

// Rank 0 makes the flag odd, rank 1 makes it even.
void play(std::atomic<std::int64_t>& flag, int rank) {
  const std::int64_t first = flag.load() / 2 * 2;
  for (std::int64_t at = first; at < first + 2 * kRounds; at += 2) {
    if (rank == 0) flag.store(at + 1, std::memory_order_release);
    await(flag, rank == 0 ? at + 2 : at + 1);
    if (rank == 1) flag.store(at + 2, std::memory_order_release);
  }
}

}  // namespace

double round_trip_ns(StartLine& line) {
  std::vector<double> found;
  for (int i = 0; i < kSeries && line.ranks() > 1 && !line.oversubscribed(); ++i) {
    line.start();
    if (line.rank() > 1) continue;
    const std::int64_t begin = now_ns();
    play(line.flag(), line.rank());
    found.push_back(double(now_ns() - begin) / kRounds);
  }
  line.barrier();
  return found.empty() ? 0 : *std::min_element(found.begin(), found.end());
}

double rate(StartLine& line, std::size_t bytes, const std::function<void()>& action) {
  action();
  const std::int64_t before = now_ns();
  action();
  // Every rank takes its own number of turns; all ranks work during the measurement.
  const auto turns = std::max<std::int64_t>(1, kShortest / std::max<std::int64_t>(
                                                               1, now_ns() - before));
  std::vector<double> found;
  for (int i = 0; i < kRepeats; ++i) {
    line.start();
    const std::int64_t begin = now_ns();
    for (std::int64_t turn = 0; turn < turns; ++turn) action();
    found.push_back(double(turns) * double(bytes) * 1e9 / double(now_ns() - begin));
  }
  return median(found);
}

}  // namespace paceline::measure
