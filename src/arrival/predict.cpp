#include "arrival/predict.hpp"

#include <algorithm>
#include <utility>

namespace paceline {
namespace {

bool is_same_set(const std::vector<int>& a, const std::vector<int>& b) {
  return a.size() == b.size() && std::is_permutation(a.begin(), a.end(), b.begin());
}

// The units that came last, the last one at the end, and how long after all others.
std::vector<int> last_units(const Latest& call, std::size_t late) {
  std::vector<int> units;
  for (std::size_t i = late; i-- > 0;) units.push_back(call.units[i].unit);
  return units;
}
std::int64_t gap_ns_of(const Latest& call, std::size_t late) {
  return call.units[late].waited_ns - call.units[late - 1].waited_ns;
}

}  // namespace

// While they are sure they keep their order. Once they are not, others take their place.
void Suspects::learn(const std::vector<int>& late, std::int64_t gap_ns, int needed, int weight) {
  const bool is_right = !late.empty() && is_same_set(late, units_);
  if (is_right) {
    row_ = std::min(row_ + weight, kLongestRow);
    gap_ns_ += (gap_ns - gap_ns_) / 4;
  } else {
    row_ = 0;
    if (trust_ > 0) --trust_;
    if (trust_ == 0 && !late.empty()) {
      row_ = weight;
      gap_ns_ = gap_ns;
    }
  }
  if (trust_ == 0 && !late.empty()) units_ = late;
  if (row_ >= needed || (is_right && trust_ > 0)) trust_ = kTrust;
}

CallPlace::CallPlace(CallPrices prices) : prices_(std::move(prices)) {
  prices_.message_ns = std::max<std::int64_t>(prices_.message_ns, 1);
}

std::int64_t CallPlace::Least::get() const {
  return *std::min_element(values.begin(), values.begin() + std::min(count, kTrials));
}

// A price includes the early units' work that is left when the late ones come.
std::optional<std::int64_t> CallPlace::saved_ns(const std::vector<int>& units,
                                                std::int64_t gap_ns) {
  Priced& priced = priced_[units.size() - 1];
  if (priced.units != units) priced = {units, prices_.naming(units)};
  if (!priced.price) return {};
  return prices_.usual_ns - priced.price->left_ns -
         std::max<std::int64_t>(0, priced.price->before_ns - gap_ns);
}

// Units that come last by less than 0.3 of a message could as well be early the next time.
bool CallPlace::pays(const std::vector<int>& units, std::int64_t gap_ns) {
  return is_apart(gap_ns) && saved_ns(units, gap_ns).value_or(0) > prices_.usual_ns / 32;
}

// Every 64th call names none, so that the usual time stays known; so does the first call after
// kTrials that did, if it is not yet.
bool CallPlace::is_probe() const {
  return calls_ % kProbeEvery == kProbeEvery - 1 || (named_.is_full() && usual_.count == 0);
}

// A naming that has proved slower than none is tried again later: lateness may have changed.
void CallPlace::compare() {
  if (!named_.is_full() || usual_.count == 0) return;
  if (named_.get() < usual_.get()) {
    next_pause_ = kShortestPause;
    return;
  }
  pause_ = next_pause_;
  next_pause_ = std::min(2 * next_pause_, kLongestPause);
  named_ = {};
  suspects_.forget();   // with their order
}

// At most a quarter of the units are named: else the others would forward too much for them.
Predictor::Predictor(int units) : most_late_(std::min(units / 4, ArrivalWords::kUnits - 1)) {}

const Suspects& Predictor::suspects_of(const CallPlace& place) const {
  const bool believes = place.seen_ < 2 && !place.suspects_.are_sure();
  return believes ? everywhere_ : place.suspects_;
}

std::vector<int> Predictor::late(CallPlace& place) const {
  const Suspects& suspects = suspects_of(place);
  if (!suspects.are_sure() || place.pause_ > 0 || place.is_probe()) return {};
  return place.pays(suspects.units(), suspects.gap_ns()) ? suspects.units() : std::vector<int>{};
}

void Predictor::count_call(CallPlace& place) const {
  ++place.calls_;
  if (place.pause_ > 0) --place.pause_;
}

// The more wrong names there were, the longer a row must be.
int Predictor::needed() const { return 2 << std::max(debt_, 0) / 4; }

bool Predictor::came_last(const CallPlace& place, const Latest& call,
                          const std::vector<int>& units) const {
  return units.size() < call.units.size() && place.is_apart(gap_ns_of(call, units.size())) &&
         is_same_set(units, last_units(call, units.size()));
}

// Returns the units whose naming would have saved most, or the suspects if that is nearly as much.
std::vector<int> Predictor::late_in(CallPlace& place, const Latest& call) const {
  std::vector<int> best;
  std::int64_t most = place.prices_.usual_ns / 32;
  const std::vector<int>& suspects = suspects_of(place).units();
  for (std::size_t late = 1; late <= std::size_t(most_late_) && late < call.units.size(); ++late) {
    const std::int64_t gap_ns = gap_ns_of(call, late);
    if (!place.is_apart(gap_ns)) continue;
    const std::vector<int> units = last_units(call, late);
    const bool are_suspects = is_same_set(units, suspects);
    std::int64_t saved = place.saved_ns(units, gap_ns).value_or(0);
    if (saved > 0 && are_suspects) saved += place.prices_.usual_ns / 10;
    if (saved <= most) continue;
    best = units;
    most = saved;
  }
  return best;
}

bool Predictor::learn(CallPlace& place, const Latest& call, const std::vector<int>& taken) {
  const std::vector<int> late = late_in(place, call);
  const std::int64_t gap_ns = late.empty() ? 0 : gap_ns_of(call, late.size());
  // The same units as the last time, at another place: that is the second time.
  const bool is_second = place.seen_ == 0 && !late.empty() && is_same_set(late, latest_);
  place.seen_ += place.seen_ < 1 << 30;
  const bool is_usual = taken.empty();
  const bool is_right = !is_usual && came_last(place, call, taken);
  if (is_right) debt_ = std::max(debt_ - 1, -kMostCredit);
  else if (!is_usual) debt_ = std::min(debt_ + 2, kMostDebt);
  const std::vector<int> before = place.suspects_.units();
  place.suspects_.learn(late, gap_ns, needed(), is_second ? 2 : 1);
  if (!is_same_set(before, place.suspects_.units())) place.usual_ = place.named_ = {};
  everywhere_.learn(late, gap_ns, needed(), 1);
  if (!late.empty()) latest_ = late;
  if (is_right) place.named_.add(call.rest_ns);
  else if (is_usual && !late.empty()) place.usual_.add(call.rest_ns);
  place.compare();
  return !late.empty();
}

Predictor::Evidence Predictor::evidence(CallPlace& place) const {
  const Suspects& suspects = suspects_of(place);
  Evidence e{place.seen_, suspects.units(), suspects.row(), suspects.gap_ns(), late(place), 0};
  if (e.late.empty()) return e;
  const bool is_measured = place.named_.count > 0 && place.usual_.count > 0;
  e.saved_ns = is_measured ? place.usual_.get() - place.named_.get()
                           : place.saved_ns(e.late, e.gap_ns).value_or(0);
  return e;
}

}  // namespace paceline
