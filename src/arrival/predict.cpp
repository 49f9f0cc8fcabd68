#include "arrival/predict.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

namespace paceline {
namespace {

constexpr int kMantissaBits = 10, kMostExponent = 31;

// The last ranks of an order, as a set.
std::vector<int> last_of(const std::vector<int>& order, int late) {
  std::vector<int> set(order.end() - late, order.end());
  std::sort(set.begin(), set.end());
  return set;
}

std::vector<int> sorted(std::vector<int> ranks) {
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

}  // namespace

std::uint32_t packed(std::int64_t ns) {
  std::uint64_t mantissa = ns < 0 ? 0 : static_cast<std::uint64_t>(ns);
  const int over = std::max(0, static_cast<int>(std::bit_width(mantissa)) - kMantissaBits);
  if (over > kMostExponent) return (1u << (kMantissaBits + 5)) - 1;
  mantissa >>= over;
  return static_cast<std::uint32_t>(over) << kMantissaBits | static_cast<std::uint32_t>(mantissa);
}

std::int64_t unpacked(std::uint32_t code) {
  const std::int64_t mantissa = code & ((1u << kMantissaBits) - 1);
  return mantissa << (code >> kMantissaBits & kMostExponent);
}

// A new value has a weight of 1/8; the first one counts whole.
void Predictor::Average::add(std::int64_t ns) {
  sum_ns = is_known ? sum_ns - sum_ns / 8 + ns : 8 * ns;
  is_known = true;
}

// At most a quarter of the ranks are named: else the others would forward too much for them.
Predictor::Predictor(int ranks, CallPrices prices)
    : ranks_(ranks),
      most_late_(std::min(ranks / 4, kMostLate)),
      prices_(std::move(prices)),
      lateness_(static_cast<std::size_t>(ranks)) {
  prices_.message_ns = std::max<std::int64_t>(prices_.message_ns, 1);
}

std::vector<int> Predictor::by_lateness() const {
  std::vector<int> order(static_cast<std::size_t>(ranks_));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return lateness_[std::size_t(a)].sum_ns < lateness_[std::size_t(b)].sum_ns;
  });
  return order;
}

// Average time between the first of the late ranks and the last of the others.
std::int64_t Predictor::gap_ns(const std::vector<int>& order, int late) const {
  const auto first = order.end() - late;
  return lateness_[std::size_t(*first)].ns() - lateness_[std::size_t(first[-1])].ns();
}

// Compares measured with measured and price with price: if the last arrival is seen late, all
// measured times seem short. A price includes the early ranks' work that is left when the late ones
// come.
std::int64_t Predictor::won_ns(int late, std::int64_t gap_ns) const {
  const Count& count = counts_[std::size_t(late - 1)];
  if (count.hit.is_known && usual_.is_known) return usual_.ns() - count.hit.ns();
  const LatePrice& price = *count.price;
  return prices_.usual_ns - price.left_ns -
         std::max<std::int64_t>(0, price.before_ns - gap_ns);
}

std::int64_t Predictor::lost_ns(int late) const {
  const Count& count = counts_[std::size_t(late - 1)];
  if (count.miss.is_known && usual_.is_known) return count.miss.ns() - usual_.ns();
  return std::max<std::int64_t>(0, count.price->wrong_ns - prices_.usual_ns);
}

// Returns the expected gain per call of naming `late` ranks.
std::int64_t Predictor::gain_ns(const std::vector<int>& order, int late) const {
  const std::int64_t of = std::clamp<std::int64_t>(learned_, kEnough, kHistory);
  const std::int64_t hits = std::popcount(counts_[std::size_t(late - 1)].hits);
  return (hits * won_ns(late, gap_ns(order, late)) - (of - hits) * lost_ns(late)) / of;
}

void Predictor::price(const std::vector<int>& order) {
  for (int late = 1; late <= most_late_; ++late) {
    Count& count = counts_[std::size_t(late - 1)];
    std::vector<int> named(order.end() - late, order.end());
    if (named == count.named) continue;
    count.named = std::move(named);
    count.price = prices_.naming(count.named);
  }
}

void Predictor::learn(const std::vector<Wait>& waits, const std::vector<int>& taken) {
  const auto later = [](const Wait& a, const Wait& b) { return a.waited_ns < b.waited_ns; };
  const std::int64_t longest = std::max_element(waits.begin(), waits.end(), later)->waited_ns;
  std::int64_t rest = 0;
  for (const Wait& wait : waits) rest = std::max(rest, wait.rest_ns);
  std::vector<int> came(static_cast<std::size_t>(ranks_));   // the last one last
  std::iota(came.begin(), came.end(), 0);
  std::stable_sort(came.begin(), came.end(), [&](int a, int b) {
    return waits[std::size_t(a)].waited_ns > waits[std::size_t(b)].waited_ns;
  });

  const std::vector<int> expected = by_lateness();
  const auto taken_count = static_cast<int>(taken.size());
  if (taken.empty()) usual_.add(rest);
  for (int late = 1; late <= most_late_; ++late) {
    Count& count = counts_[std::size_t(late - 1)];
    const auto first = came.end() - late;
    const std::int64_t gap =
        waits[std::size_t(first[-1])].waited_ns - waits[std::size_t(*first)].waited_ns;
    // A rank that comes last by less than this could as well have been early.
    const bool is_apart = 20 * gap >= 7 * prices_.message_ns;
    const std::vector<int> last = last_of(came, late);
    const bool is_hit = learned_ > 0 && is_apart && last == last_of(expected, late);
    count.hits = count.hits << 1 | (is_hit ? 1u : 0u);
    if (late == taken_count) (is_apart && last == sorted(taken) ? count.hit : count.miss).add(rest);
  }
  for (int r = 0; r < ranks_; ++r)
    lateness_[std::size_t(r)].add(longest - waits[std::size_t(r)].waited_ns);
  // A count that was once too slow is tried again: late ranks and their lateness may have changed.
  if (++learned_ % kForget == 0)
    for (Count& count : counts_) count.hit = count.miss = {};
  decide();
}

// Hysteresis: names ranks that were right 4 times in a row, come half a message apart, and win a
// tenth of a call. Stops naming ranks that were wrong 4 times in a row, come less than 0.35 of a
// message apart, or win nothing.
void Predictor::decide() {
  constexpr std::uint32_t kRowBits = (1u << kRow) - 1;
  const std::vector<int> order = by_lateness();
  price(order);
  const auto now = static_cast<int>(late_.size());
  std::int64_t best = 0;
  int chosen = 0;
  if (now > 0 && counts_[std::size_t(now - 1)].price &&
      (counts_[std::size_t(now - 1)].hits & kRowBits) != 0 &&
      20 * gap_ns(order, now) >= 7 * prices_.message_ns && gain_ns(order, now) > 0) {
    chosen = now;
    best = gain_ns(order, now);
  }
  for (int late = 1; late <= most_late_; ++late) {
    const Count& count = counts_[std::size_t(late - 1)];
    if (late == now || !count.price || (count.hits & kRowBits) != kRowBits) continue;
    if (2 * gap_ns(order, late) < prices_.message_ns) continue;
    const std::int64_t gain = gain_ns(order, late);
    if (gain <= best + prices_.usual_ns / 10) continue;
    chosen = late;
    best = gain;
  }
  late_.assign(order.end() - chosen, order.end());
}

Predictor::Evidence Predictor::evidence() const {
  Evidence e;
  e.calls = learned_;
  for (const Average& average : lateness_) e.lateness_ns.push_back(average.ns());
  for (int late = 1; late <= most_late_; ++late)
    e.hits.push_back(std::popcount(counts_[std::size_t(late - 1)].hits));
  e.late = late_;
  const auto late = static_cast<int>(late_.size());
  if (late > 0) e.won_ns = won_ns(late, gap_ns(by_lateness(), late));
  if (late > 0) e.lost_ns = lost_ns(late);
  return e;
}

}  // namespace paceline
