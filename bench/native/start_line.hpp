// StartLine: the place where the ranks of a measurement meet before each call, so that their times
// do not depend on which of them are early.
//
// A few words in memory that all ranks map; no collective of any library is involved, so none of
// them is warmed up or favoured. Moments are nanoseconds of CLOCK_MONOTONIC, which the processes of
// a machine share.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace paceline::measure {

std::int64_t now_ns();

// A word in its own pair of cache lines, since processors fetch them in pairs.
struct alignas(128) Lane {
  std::atomic<std::int64_t> word;
};

class StartLine {
 public:
  // Bytes of the memory, which is zeroed at first and aligned like a Lane.
  static std::size_t bytes(int ranks) { return (kSeats + std::size_t(ranks)) * sizeof(Lane); }

  // `oversubscribed`: ranks outnumber cores and take turns, so that none may spin. `idle` is
  // called now and then while this rank waits; what it throws ends the wait. May be null.
  StartLine(void* memory, int rank, int ranks, bool oversubscribed, void (*idle)() = nullptr);

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  bool oversubscribed() const { return oversubscribed_; }

  // Returns once every rank has called it as often as this one. Throws a timeout error that names
  // the missing ranks.
  void barrier();
  // Waits for all ranks, then for one moment that they agree on, and returns it.
  std::int64_t start();
  // Like start(), but spins for some microseconds instead of sleeping: caches stay warm, and the
  // shortest calls are not measured as the first ones after a pause. The same as start() if ranks
  // are oversubscribed.
  std::int64_t start_hot();

  // The word that ranks 0 and 1 pass back and forth in round_trip_ns().
  std::atomic<std::int64_t>& flag() { return lanes_[kFlag].word; }

 private:
  enum : std::size_t { kMoment, kFlag, kSeats };
  enum class Wait { asleep, spinning };

  void meet(Wait wait);
  std::int64_t agree(Wait wait, std::int64_t ahead);

  Lane* lanes_;
  int rank_, ranks_;
  bool oversubscribed_;
  void (*idle_)();
};

}  // namespace paceline::measure
