// Predictor: which ranks will come late to the next call, from how they came to the last ones.
//
// A pure function of what it is told, in whole numbers: ranks that are told the same decide the
// same, bit for bit. It learns the lateness of every rank as a moving average, looks at how often
// the ranks that it would have named were the last ones indeed, and names them only where that has
// paid, by what calls took or, before any did, by the model (docs/design/0042-predict.md).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace paceline {

// What a rank says of one of its calls; nanoseconds.
struct Wait {
  std::int64_t waited_ns = 0;   // from its entry until the last rank entered
  std::int64_t rest_ns = 0;     // from then until it was done
};

// What a call is expected to take where it names late ranks; nanoseconds.
struct LatePrice {
  std::int64_t left_ns = 0;     // from the last rank's entry on, where they are late enough
  std::int64_t before_ns = 0;   // what the others do before they enter
  std::int64_t wrong_ns = 0;    // at most, from the last entry on, where others are late
};

// Prices of a call. `naming` returns nothing if the call cannot name these ranks.
struct CallPrices {
  std::int64_t message_ns = 0;   // of the whole message at a rank's port
  std::int64_t usual_ns = 0;     // naming no rank
  std::function<std::optional<LatePrice>(const std::vector<int>& late)> naming;
};

// A wait in 15 bits, to one part in 512; longer ones than 36 minutes count as that.
std::uint32_t packed(std::int64_t ns);
std::int64_t unpacked(std::uint32_t code);

class Predictor {
 public:
  static constexpr int kMostLate = 4;

  // What it goes by; for those who want to see it.
  struct Evidence {
    std::int64_t calls = 0;                  // that it learned from
    std::vector<std::int64_t> lateness_ns;   // of every rank, on average
    std::vector<int> hits;   // of the last 32 calls, for one late rank, for two, and so on
    std::vector<int> late;        // decided; and what a call takes from the last arrival on:
    std::int64_t won_ns = 0;      // so much less than if nobody was named, where they do come last
    std::int64_t lost_ns = 0;     // so much more, where others do
  };

  Predictor(int ranks, CallPrices prices);

  // Whom the next call is to take for late, the latest one last; empty: nobody. Every 64th call
  // names nobody, so that what that takes is known as well.
  const std::vector<int>& late() const { return is_probe() ? nobody_ : late_; }
  void count_call() { ++calls_; }
  // Those that it would name if every call did, and how much later than all others the first of
  // them comes, on average; 0: nobody is.
  const std::vector<int>& named() const { return late_; }
  std::int64_t named_gap_ns() const {
    return late_.empty() ? 0 : gap_ns(by_lateness(), static_cast<int>(late_.size()));
  }

  // One call, as all ranks saw it, and whom it took for late.
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
    Average hit, miss;         // of the times of calls that named so many
    std::vector<int> named;    // the ranks that it would name: the latest so many
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
