// Predictor: predicts the late ranks of the next call from the arrivals at earlier calls.
//
// A pure function of its input in whole numbers: ranks with equal input decide alike, bit for bit.
// It learns every rank's lateness as a moving average, counts how often the ranks that it would
// have named came last, and names them only if that pays, by measured times or, before there are
// any, by the model (docs/design/0042-predict.md).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace paceline {

// One rank's times in one call; nanoseconds.
struct Wait {
  std::int64_t waited_ns = 0;   // from its entry until the last rank entered
  std::int64_t rest_ns = 0;     // from then until it was done
};

// Expected times of a call that names late ranks; nanoseconds.
struct LatePrice {
  std::int64_t left_ns = 0;     // from the last rank's entry on, if they are late enough
  std::int64_t before_ns = 0;   // work of the others before the late ranks enter
  std::int64_t wrong_ns = 0;    // at most, from the last entry on, if other ranks are late
};

// Prices of a call. `naming` returns nothing if the call cannot name these ranks.
struct CallPrices {
  std::int64_t message_ns = 0;   // of the whole message at a rank's port
  std::int64_t usual_ns = 0;     // naming no rank
  std::function<std::optional<LatePrice>(const std::vector<int>& late)> naming;
};

// Packs a wait into 15 bits, to one part in 512; waits over 36 minutes count as 36 minutes.
std::uint32_t packed(std::int64_t ns);
std::int64_t unpacked(std::uint32_t code);

class Predictor {
 public:
  static constexpr int kMostLate = 4;

  // Numbers behind the decision, for display.
  struct Evidence {
    std::int64_t calls = 0;                  // that it learned from
    std::vector<std::int64_t> lateness_ns;   // of every rank, on average
    std::vector<int> hits;   // of the last 32 calls, for one late rank, for two, and so on
    std::vector<int> late;        // the ranks named
    std::int64_t won_ns = 0;      // saved after the last arrival if they come last, by naming them
    std::int64_t lost_ns = 0;     // lost if others come last
  };

  Predictor(int ranks, CallPrices prices);

  // Ranks that the next call treats as late, the latest one last; empty: none. Every 64th call
  // names none, so that the time without naming stays known.
  const std::vector<int>& late() const { return is_probe() ? nobody_ : late_; }
  void count_call() { ++calls_; }
  // Ranks that it would name if every call did. named_gap_ns(): how much later than all others the
  // first of them comes, on average; 0: none is named.
  const std::vector<int>& named() const { return late_; }
  std::int64_t named_gap_ns() const {
    return late_.empty() ? 0 : gap_ns(by_lateness(), static_cast<int>(late_.size()));
  }

  // Learns from one call, as all ranks saw it; `taken`: the ranks that it treated as late.
  void learn(const std::vector<Wait>& waits, const std::vector<int>& taken);

  Evidence evidence() const;

 private:
  static constexpr int kProbeEvery = 64, kForget = 512, kHistory = 32, kEnough = 16,
                       kRow = 4;

  struct Average {
    std::int64_t sum_ns = 0;   // eight times the average
    bool is_known = false;
    void add(std::int64_t ns);
    std::int64_t ns() const { return sum_ns / 8; }
  };
  struct Count {               // of late ranks
    std::uint32_t hits = 0;    // a bit for each of the last calls, the newest the lowest
    Average hit, miss;         // times of calls that named that many, if right and if wrong
    std::vector<int> named;    // the ranks that it would name
    std::optional<LatePrice> price;   // of naming them
  };

  bool is_probe() const { return calls_ % kProbeEvery == kProbeEvery - 1; }
  std::vector<int> by_lateness() const;   // ranks, the latest last
  std::int64_t gap_ns(const std::vector<int>& order, int late) const;
  std::int64_t won_ns(int late, std::int64_t gap_ns) const;
  std::int64_t lost_ns(int late) const;
  std::int64_t gain_ns(const std::vector<int>& order, int late) const;
  void price(const std::vector<int>& order);
  void decide();

  int ranks_, most_late_;
  CallPrices prices_;
  std::int64_t calls_ = 0, learned_ = 0;
  std::vector<Average> lateness_;
  std::array<Count, kMostLate> counts_;
  Average usual_;   // of calls that named no rank
  std::vector<int> late_;
  const std::vector<int> nobody_;
};

}  // namespace paceline
