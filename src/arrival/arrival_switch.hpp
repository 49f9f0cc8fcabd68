// ArrivalSwitch: decides if calls in shared memory follow the order of arrival or the usual
// schedule, by the time that former calls took after their last rank had come.
//
// A pure function of its input in whole numbers: ranks with equal input decide alike. It tries
// nothing while no rank is late, and pauses after a trial that saved nothing
// (docs/design/0044-arrival-in-the-node.md).
#pragma once

#include <bit>
#include <cstdint>

namespace paceline {

class ArrivalSwitch {
 public:
  // One call, as all ranks saw it; nanoseconds.
  struct Seen {
    std::int64_t late_ns = 0;   // from when half of the ranks had entered until the last one had
    std::int64_t rest_ns = 0;   // from then until the last one left
    bool by_arrival = false;    // it followed the order of arrival
    // Some ranks take turns on a core: a rank that waits for the core is late without being slow.
    bool takes_turns = false;
  };
  // Numbers behind the decision, for display.
  struct Evidence {
    std::int64_t calls = 0;        // that it learned from
    int late = 0;                  // of the last 32 calls, those with a late rank
    std::int64_t usual_ns = 0;     // left in calls with a late rank, on average; 0: not known
    std::int64_t arrival_ns = 0;
    bool by_arrival = false;       // the decision
  };

  bool next();   // true if the next call goes by arrival; counts that call
  void learn(const Seen& seen);
  Evidence evidence() const;

 private:
  static constexpr int kRow = 4, kTrial = 4, kProbeEvery = 64, kMostPauses = 5;
  static constexpr int kRowOfTurns = 16;   // the same if ranks take turns
  enum class State : std::uint8_t { usual, trial, arrival };

  struct Average {   // mean of the first values; later ones have a weight of 1/8
    std::int64_t ns = 0;
    int count = 0;
    void add(std::int64_t more) { ns += (more - ns) / (count = count < 8 ? count + 1 : 8); }
  };

  // True if each of the last `calls` calls had a late rank.
  bool is_row(int calls) const { return std::countr_one(late_) >= calls; }
  // True if at least a quarter of the last 16 calls had no late rank.
  bool is_rare() const {
    const std::uint32_t row = late_ & ((1u << kRowOfTurns) - 1);
    return 4 * std::popcount(row) <= 3 * kRowOfTurns;
  }
  void give_up();
  bool pays() const { return 10 * arrival_.ns <= 9 * usual_.ns; }

  State state_ = State::usual;
  std::int64_t calls_ = 0, learned_ = 0;
  std::int64_t again_ = 0;      // value of learned_ from which a trial may start
  int pauses_ = 0;              // after trials, so far
  int to_take_ = 0, tried_ = 0;   // of a trial's calls
  std::uint32_t late_ = 0;      // a bit for each of the last calls, the newest the lowest
  Average usual_, arrival_;     // of calls with a late rank
};

}  // namespace paceline
