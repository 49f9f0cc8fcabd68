// Predictor: predicts from the arrivals at earlier calls which units of a communicator come last to
// the next one.
//
// A pure function of its input in whole numbers: with equal input all ranks decide alike. It learns
// at two levels: for the communicator which units are slow, and for a place in the program's
// sequence of calls when they are. A place believes the communicator until it has seen two calls
// itself. It names units that came last a few times in a row, if that pays: by the model's prices,
// and by measured times once there are some (docs/design/0042-predict.md).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "arrival/latest.hpp"

namespace paceline {

// Expected times of a call that names late units; nanoseconds.
struct LatePrice {
  std::int64_t left_ns = 0;     // from the last unit's entry on, if they are late enough
  std::int64_t before_ns = 0;   // work of the others before the late units enter
};

// Prices of a call. `naming` returns nothing if the call cannot name these units.
struct CallPrices {
  std::int64_t message_ns = 0;   // of the whole message at a unit's port
  std::int64_t usual_ns = 0;     // naming none
  std::function<std::optional<LatePrice>(const std::vector<int>& late)> naming;
};

// The units that came last to some calls, and how surely they will again.
class Suspects {
 public:
  // Learns which units came late to a call, the last one at the end, and their distance from the
  // others; no unit: none did. They are sure once it was so `needed` times in a row, and until it
  // was not so twice in a row. This call counts as `weight` calls.
  void learn(const std::vector<int>& late, std::int64_t gap_ns, int needed, int weight);
  void forget() { *this = {}; }

  bool are_sure() const { return trust_ > 0; }
  const std::vector<int>& units() const { return units_; }   // sure or not
  std::int64_t gap_ns() const { return gap_ns_; }            // on average
  int row() const { return row_; }

 private:
  static constexpr int kTrust = 2, kLongestRow = 32;
  std::vector<int> units_;
  std::int64_t gap_ns_ = 0;
  int row_ = 0, trust_ = 0;
};

// A place in a program's sequence of calls, and what its calls have taught.
class CallPlace {
 public:
  explicit CallPlace(CallPrices prices);
  int seen() const { return seen_; }   // calls

 private:
  friend class Predictor;
  static constexpr int kTrials = 4, kProbeEvery = 64, kShortestPause = 8, kLongestPause = 32;

  struct Least {   // of the last values
    std::array<std::int64_t, kTrials> values = {};
    int count = 0;
    void add(std::int64_t value) { values[std::size_t(count++ % kTrials)] = value; }
    bool is_full() const { return count >= kTrials; }
    std::int64_t get() const;
  };
  struct Priced {
    std::vector<int> units;
    std::optional<LatePrice> price;
  };

  // Returns the time that naming these units saves, by the model; nothing if the call cannot.
  std::optional<std::int64_t> saved_ns(const std::vector<int>& units, std::int64_t gap_ns);
  bool pays(const std::vector<int>& units, std::int64_t gap_ns);
  bool is_apart(std::int64_t gap_ns) const { return 10 * gap_ns >= 3 * prices_.message_ns; }
  bool is_probe() const;
  void compare();

  CallPrices prices_;
  Suspects suspects_;
  int seen_ = 0, calls_ = 0;
  Least usual_, named_;    // times of calls from the last entry on, if the suspects came last
  int pause_ = 0, next_pause_ = kShortestPause;   // calls that name none
  std::array<Priced, ArrivalWords::kUnits> priced_;   // by number of units
};

class Predictor {
 public:
  explicit Predictor(int units);

  // Units that the next call at this place takes for late, the last one at the end.
  std::vector<int> late(CallPlace& place) const;
  void count_call(CallPlace& place) const;
  // Learns from a call at this place, which took those units for late. Returns true if any came
  // late.
  bool learn(CallPlace& place, const Latest& call, const std::vector<int>& taken);

  // Numbers behind the decision, for display.
  struct Evidence {
    int calls = 0;                  // seen at this place
    std::vector<int> suspects;      // empty: no unit was late
    int row = 0;                    // calls in a row to which they came last
    std::int64_t gap_ns = 0;        // by so much, on average
    std::vector<int> late;          // the units named
    std::int64_t saved_ns = 0;      // after the last entry, by naming them
  };
  Evidence evidence(CallPlace& place) const;
  // Suspects that the place goes by, whether or not it names them.
  const Suspects& suspects_of(const CallPlace& place) const;

 private:
  static constexpr int kMostCredit = 16, kMostDebt = 19;

  int needed() const;
  std::vector<int> late_in(CallPlace& place, const Latest& call) const;
  bool came_last(const CallPlace& place, const Latest& call, const std::vector<int>& units) const;

  int most_late_;
  Suspects everywhere_;
  std::vector<int> latest_;   // units that came late to the last call to which some did
  // Two for each call that named the wrong units, less one for each that named the right ones.
  int debt_ = 0;
};

}  // namespace paceline
