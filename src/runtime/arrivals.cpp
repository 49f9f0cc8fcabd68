#include "runtime/arrivals.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/random.hpp"
#include "base/str.hpp"
#include "arrival/notes.hpp"
#include "runtime/fingerprint.hpp"
#include "runtime/progress/session.hpp"

namespace paceline {
namespace {

// Lengths of the same power of two count as equal.
std::uint64_t signature_of(const Call& call) {
  const std::uint64_t length = call.uneven ? 64 : std::uint64_t(std::bit_width(call.count));
  const std::uint64_t root = has_root(call.collective) ? std::uint64_t(call.root) : 0;
  const std::uint64_t op = has_op(call.collective) ? static_cast<std::uint64_t>(call.op) : 0;
  return Random::mix(static_cast<std::uint64_t>(call.collective) | length << 8 | op << 16 |
                     static_cast<std::uint64_t>(call.type) << 24 | root << 32) ^
         Random::mix(call.tag);
}

std::int64_t in_ns(double seconds) { return static_cast<std::int64_t>(1e9 * seconds); }

std::string listed(const std::vector<int>& ranks) {
  std::string out;
  for (int r : ranks) out += str(out.empty() ? "" : ", ", r);
  return out;
}

std::string in_ms(std::int64_t ns) { return str(double(ns / 1000) / 1000); }

int units_in(const std::vector<int>& unit_of) {
  return unit_of.empty() ? 0 : 1 + *std::max_element(unit_of.begin(), unit_of.end());
}

using Waits = ArrivalWords::Waits;

// A non-blocking call, kept until the next one at its place.
struct StartedCall {
  std::shared_ptr<ActiveOp> active;
  Waits promised = Waits::no;   // by this rank
};

// News that all ranks have at the end of a call, and learn before the next one at its place.
struct Lesson {
  ToldCall told;
  Latest latest;
};

}  // namespace

struct ArrivalSite {
  std::uint64_t key;
  CallPlace place;
  ToldCall previous = {};           // the last call here, if this rank has measured it
  std::optional<Lesson> lesson = {};
  StartedCall started = {};         // the last call, if it was non-blocking
  int awaited = 0;   // calls in a row for which the program waited before the next; <= kHabit
};

// A site and what it keeps point at each other.
static void clear(ArrivalSite& site) {
  site.started = {};
  site.previous = {};
  site.lesson = {};
}

Expected expected_by(std::string_view option) {
  if (option == "off") return {};
  if (option == "nodes") return {.learns = true};
  if (option == "auto") return {.learns = true, .learns_in_node = true};
  constexpr std::string_view kStatic = "static:";
  Expected expected;
  std::string_view rest = option;
  bool good = option.starts_with(kStatic) && option.size() > kStatic.size();
  if (good) rest.remove_prefix(kStatic.size());
  while (good) {
    int rank = -1;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), rank);
    good = error == std::errc() && rank >= 0 &&
           std::find(expected.late.begin(), expected.late.end(), rank) == expected.late.end();
    if (!good) break;
    expected.late.push_back(rank);
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    if (rest.empty()) return expected;
    good = rest[0] == ',';
    rest.remove_prefix(1);
  }
  fail(Fault::usage, "PACELINE_PREDICT is '", option, "'; it must be off, nodes, auto, or ",
       "static: with the late ranks, each once, the latest one last, as in static:3,5.");
}

ArrivalBook::ArrivalBook(const Expected& expected, const std::vector<int>& ranks, int rank,
                         const std::vector<int>& nodes, double beta_s_per_byte, Prices prices)
    : learns_(expected.learns && ranks.size() > 3 && ranks.size() <= ArrivalWords::kMostRanks),
      ranks_(static_cast<int>(ranks.size())),
      rank_(rank),
      unit_of_(nodes),
      are_nodes_(!nodes.empty()),
      beta_s_per_byte_(beta_s_per_byte),
      prices_(std::move(prices)),
      predictor_(are_nodes_ ? units_in(nodes) : ranks_) {
  for (int r = 0; !are_nodes_ && r < ranks_; ++r) unit_of_.push_back(r);
  for (int late : expected.late)
    if (const auto at = std::find(ranks.begin(), ranks.end(), late); at != ranks.end())
      late_.push_back(static_cast<int>(at - ranks.begin()));
}

// Breaks the cycles between a site and its operation, or itself.
ArrivalBook::~ArrivalBook() {
  for (const auto& site : newest_first_) clear(*site);
}

bool ArrivalBook::is_long(const Call& call) const {
  return call.count * size_of(call.type) >=
         kShare * Notes::kBytes * static_cast<std::size_t>(ranks_);
}

// Only a result to which all ranks contribute brings their notes to each rank: an allreduce. The
// messages of devices have no notes.
bool ArrivalBook::wants(const Call& call) const {
  if (call.collective != Collective::allreduce || call.uneven) return false;
  return is_on() && !call.device.end && is_long(call);
}

bool ArrivalBook::follows(const Call& call) const {
  const bool is_rooted =
      call.collective == Collective::reduce || call.collective == Collective::broadcast;
  return is_rooted && !call.device.end && is_long(call);
}

std::uint64_t ArrivalBook::key_of(const Call& call) const {
  const std::uint64_t signature = signature_of(call);
  return call.tag != 0 ? signature : sequence_.key_of(signature);
}

std::shared_ptr<ArrivalSite> ArrivalBook::find(std::uint64_t key) const {
  const auto it = std::find_if(newest_first_.begin(), newest_first_.end(),
                               [&](const auto& site) { return site->key == key; });
  return it == newest_first_.end() ? nullptr : *it;
}

std::shared_ptr<ArrivalSite> ArrivalBook::made(std::uint64_t key, const Call& call) const {
  CallPrices prices = prices_(call);
  prices.naming = [this, by_ranks = std::move(prices.naming)](const std::vector<int>& units) {
    return by_ranks(ranks_of(units));
  };
  return std::make_shared<ArrivalSite>(ArrivalSite{key, CallPlace(std::move(prices))});
}

std::vector<int> ArrivalBook::ranks_of(const std::vector<int>& units) const {
  if (!are_nodes_) return units;
  std::vector<int> ranks;
  for (int unit : units)
    for (int r = 0; r < ranks_; ++r)
      if (unit_of_[std::size_t(r)] == unit) ranks.push_back(r);
  return ranks;
}

// Returns the late ranks if they come later than the others by at least half the time that this
// message takes. A late root of a broadcast, and its node, is left out, since all must wait for it.
std::vector<int> ArrivalBook::late_for(const Call& rooted) const {
  const double message_s = beta_s_per_byte_ * double(rooted.count * size_of(rooted.type));
  if (learns_ && 2 * named_gap_ns_ < in_ns(message_s)) return {};
  std::vector<int> late = learns_ ? named_ : late_;
  const auto unit = [&](int rank) { return unit_of_[std::size_t(rank)]; };
  if (rooted.collective == Collective::broadcast)
    std::erase_if(late, [&](int rank) { return unit(rank) == unit(rooted.root); });
  return late;
}

ArrivalBook::Turn ArrivalBook::looked_up(const Call& call) const {
  Turn turn;
  if (wants(call) && learns_) {
    const std::uint64_t key = key_of(call);
    turn.site = find(key);
    if (!turn.site) turn.site = made(key, call);
    turn.units = predictor_.late(turn.site->place);
    turn.late = ranks_of(turn.units);
  } else if (wants(call)) {
    turn.late = late_;
  } else if (follows(call)) {
    turn.late = late_for(call);
  }
  if (!turn.late.empty()) turn.digest = digest_of(turn.late);
  return turn;
}

void ArrivalBook::count(const Call& call) { sequence_.count(signature_of(call)); }

void ArrivalBook::keep(const std::shared_ptr<ArrivalSite>& site) {
  newest_first_.remove(site);
  newest_first_.push_front(site);
  if (newest_first_.size() <= kMostSites) return;
  clear(*newest_first_.back());
  newest_first_.pop_back();
}

void ArrivalBook::begin(Turn turn, const Call& call, const std::shared_ptr<ActiveOp>& active,
                        bool is_blocking) {
  if (!is_on()) return;
  count(call);
  if (turn.site) keep(turn.site);
  if (!active->operation->notes()) return;
  turn.call = sequence_.calls();
  ArrivalSite& site = *turn.site;
  turn.told = std::exchange(last_, {});
  if (!turn.told.site) turn.told = site.previous;
  site.previous = {};
  const Waits waits = is_blocking ? Waits::before_any : promise_of(site, call);
  const ToldCall& told = turn.told;
  active->operation->notes()->say(told.site ? ArrivalWords(waits, unit_of_[std::size_t(rank_)],
                                                  told.waited_ns, told.rest_ns)
                                   : ArrivalWords(waits));
  predictor_.count_call(site.place);
  const Suspects& suspects = predictor_.suspects_of(site.place);
  named_ = suspects.are_sure() ? ranks_of(suspects.units()) : std::vector<int>{};
  named_gap_ns_ = suspects.gap_ns();
  active->is_observed = false;
  if (is_blocking) awaited_ = active;
  else site.started = {active, waits};
  newest_ = is_blocking ? nullptr : turn.site;
  active->turn = std::move(turn);
}

// A caller that always waited before its next call is taken to do so again.
Waits ArrivalBook::promise_of(const ArrivalSite& site, const Call& call) const {
  if (!call.may_wait) return Waits::no;
  if (awaited_anywhere_ == kHabit) return Waits::before_any;
  return site.awaited == kHabit ? Waits::before_alike : Waits::no;
}

void ArrivalBook::settle_newest() {
  const auto site = newest_;
  if (!site || !site->started.active) return;
  const StartedCall& started = site->started;
  if (started.promised == Waits::before_any || started.active->is_observed) settle(*site);
  else awaited_anywhere_ = 0;
  newest_ = nullptr;
}

// The news may move the call to another place.
void ArrivalBook::settle_place(const Call& call) {
  if (!wants(call)) return;
  settle_newest();
  std::uint64_t key = 0;
  while (key != key_of(call)) {
    key = key_of(call);
    const auto site = find(key);
    if (!site) return;
    settle(*site);
    if (const auto lesson = std::exchange(site->lesson, std::nullopt))
      take(lesson->told, lesson->latest);
  }
}

void ArrivalBook::settle(const std::shared_ptr<ActiveOp>& active) {
  const auto site = active->turn.site;
  if (site && site->started.active == active) settle(*site);
}

// is_observed tells whether the program itself has waited for the call. If so, learn_from() finds
// the call complete.
void ArrivalBook::settle(ArrivalSite& site) {
  if (!site.started.active) return;
  const bool is_observed = site.started.active->is_observed;
  if (site.started.promised != Waits::no || is_observed) learn_from(site.started.active);
  const auto count = [](int& calls, bool more) { calls = more ? std::min(calls + 1, kHabit) : 0; };
  count(site.awaited, is_observed);
  if (newest_.get() == &site) {
    count(awaited_anywhere_, is_observed);
    newest_ = nullptr;
  }
  site.started = {};
}

void ArrivalBook::learn_from(std::shared_ptr<ActiveOp>& awaited) {
  const auto active = std::exchange(awaited, nullptr);
  if (!active->operation->done()) {
    try {
      active->session->wait(*active, active->operation->number(), 0, 0);
    } catch (...) {   // an interrupted wait is repeated before the next call
      awaited = active;
      throw;
    }
  }
  if (!active->operation->error()) learn(*active);
}

// A call that all ranks wait for before any other is learned from at once, and the next one tells
// of it. If some wait for it only before the next one at its place, that one does both.
void ArrivalBook::learn(const ActiveOp& active) {
  const Turn& turn = active.turn;
  const Notes& notes = *active.operation->notes();
  const ArrivalWords& words = notes.words();
  const double shared_end_s = active.overlap ? active.overlap->end_s.load() : 0;
  const ToldCall measured{turn.site, turn.call, turn.units, in_ns(notes.waited_s()),
                          in_ns(notes.rest_s(shared_end_s))};
  const bool is_known = words.is_known() && turn.told.site;
  if (words.waits() == Waits::before_any) {
    last_ = measured;
    if (is_known) take(turn.told, words.latest());
    return;
  }
  turn.site->previous = measured;
  if (is_known && words.waits() == Waits::before_alike)
    turn.site->lesson = Lesson{turn.told, words.latest()};
}

void ArrivalBook::take(const ToldCall& told, const Latest& latest) {
  if (predictor_.learn(told.site->place, latest, told.units)) sequence_.late_at(told.call);
}

std::string ArrivalBook::evidence(const Call& call) const {
  if (!expects(call)) return {};
  if (!learns_) return str("; arrival=static: taken for late: ", listed(late_));
  const Turn turn = turn_of(call);
  if (!wants(call))
    return str("; arrivals, as the last allreduce knew them: taken for late: ",
               turn.late.empty() ? "none" : listed(turn.late));
  const Predictor::Evidence e = predictor_.evidence(turn.site->place);
  const char* const unit = are_nodes_ ? "node " : "rank ";
  std::string out = str("; arrivals, of ", e.calls, " calls at this place: ");
  if (e.row == 0) out += "no rank came late to the last one";
  else out += str(unit, listed(e.suspects), " came last to the last ", e.row, ", by ",
                  in_ms(e.gap_ns), " ms");
  out += str("; taken for late: ", e.late.empty() ? "none" : listed(turn.late));
  return e.late.empty() ? out : str(out, ", which saves ", in_ms(e.saved_ns), " ms");
}

}  // namespace paceline
