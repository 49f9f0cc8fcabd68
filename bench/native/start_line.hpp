// StartLine: where the ranks of a measurement meet before each call, so that nobody is measured by
// being early.
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

// A word of its own pair of cache lines, since processors fetch them in pairs.
struct alignas(128) Lane {
  std::atomic<std::int64_t> word;
};

class StartLine {
 public:
  // Of the memory: zeroed at first, aligned like a Lane.
  static std::size_t bytes(int ranks) { return (kSeats + std::size_t(ranks)) * sizeof(Lane); }

  // `oversubscribed`: ranks outnumber cores and take turns, so that nobody may spin. `idle` is
  // called now and then while this rank waits; what it throws ends the wait. May be null.
  StartLine(void* memory, int rank, int ranks, bool oversubscribed, void (*idle)() = nullptr);

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  bool oversubscribed() const { return oversubscribed_; }

  // Returns once every rank has called it as often as this one. Throws a timeout error that names
  // the missing ranks.
  void barrier();
  // Waits for everybody and then for one moment that all ranks agree on, which it returns.
  std::int64_t start();
  // Likewise without sleeping, in some microseconds: what has just run stays warm, and the shortest
  // calls are not measured as the first ones after a pause. Where ranks are oversubscribed it is
  // start().
  std::int64_t start_hot();

  // A word for ranks 0 and 1 to play with.
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
