#include "runtime/arrivals.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <utility>

#include "base/error.hpp"
#include "base/random.hpp"
#include "base/str.hpp"
#include "runtime/fingerprint.hpp"
#include "runtime/progress/session.hpp"

namespace paceline {
namespace {

// A rank's word, from the highest bit: known (set by the notes); the call is awaited; 15 bits for
// the rank's wait in the previous call; 15 bits for the rest of that call. The rest ends with the
// calls that overlapped it, since time won at their cost is not won.
constexpr std::uint32_t kAwaited = 1u << 30, kNone = 0x7fff;
constexpr int kWaitedShift = 15;

std::uint32_t word_of(bool is_awaited, const Wait* measured) {
  const std::uint32_t waited = measured ? std::min(packed(measured->waited_ns), kNone - 1) : kNone;
  const std::uint32_t rest = measured ? packed(measured->rest_ns) : 0;
  return (is_awaited ? kAwaited : 0) | waited << kWaitedShift | rest;
}

std::uint32_t waited_in(std::uint32_t word) { return word >> kWaitedShift & kNone; }

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

// A non-blocking call, kept until the next one like it.
struct StartedCall {
  std::shared_ptr<ActiveOp> active;
  bool is_awaited = false;   // this rank has promised to wait for it
};

}  // namespace

struct ArrivalSite {
  std::uint64_t key;
  Predictor predictor;
  std::vector<int> taken;      // ranks that the previous call took for late
  Wait own = {};               // this rank's times in the previous call
  bool is_measured = false;    // `own` is measured, and yet to be sent
  StartedCall started = {};        // the previous call, if it was non-blocking
  int in_row = 0;              // consecutive non-blocking calls awaited before the next; <= kHabit
};

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
       "static: and the ranks that come late, each once, the latest one last, as in static:3,5.");
}

ArrivalBook::ArrivalBook(const Expected& expected, const std::vector<int>& ranks,
                         double beta_s_per_byte, Prices prices)
    : learns_(expected.learns && ranks.size() > 3),
      ranks_(static_cast<int>(ranks.size())),
      beta_s_per_byte_(beta_s_per_byte),
      prices_(std::move(prices)) {
  for (int late : expected.late)
    if (const auto at = std::find(ranks.begin(), ranks.end(), late); at != ranks.end())
      late_.push_back(static_cast<int>(at - ranks.begin()));
}

// Breaks the cycle between a site and its started operation.
ArrivalBook::~ArrivalBook() {
  for (const auto& site : newest_first_) site->started = {};
}

bool ArrivalBook::is_long(const Call& call) const {
  const auto words = static_cast<std::size_t>(ranks_) * (static_cast<std::size_t>(ranks_) + 1);
  return call.count * size_of(call.type) >= kBytesPerWord * words;
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

// Returns the late ranks if they come later than the others by at least half the time that this
// message takes. A late root of a broadcast is left out, since all ranks must wait for it.
std::vector<int> ArrivalBook::late_for(const Call& rooted) const {
  const double message_s = beta_s_per_byte_ * double(rooted.count * size_of(rooted.type));
  if (learns_ && 2 * named_gap_ns_ < in_ns(message_s)) return {};
  std::vector<int> late = learns_ ? named_ : late_;
  if (rooted.collective == Collective::broadcast) std::erase(late, rooted.root);
  return late;
}

ArrivalBook::Turn ArrivalBook::looked_up(const Call& call) const {
  Turn turn;
  turn.key = key_of(call);
  if (wants(call)) {
    if (!learns_) turn.late = late_;
    turn.site = find(turn.key);
    if (turn.site) turn.late = turn.site->predictor.late();
  } else if (follows(call)) {
    turn.late = late_for(call);
  }
  if (!turn.late.empty()) turn.digest = digest_of(turn.late);
  return turn;
}

void ArrivalBook::count(const Call& call) { sequence_.count(signature_of(call)); }

void ArrivalBook::begin(const Turn& begun, const Call& call,
                        const std::shared_ptr<ActiveOp>& active,
                        bool is_blocking) {
  if (!is_on()) return;
  count(call);
  if (!active->operation->notes()) return;
  Turn& turn = active->turn = begun;
  if (turn.site) {
    newest_first_.remove(turn.site);
  } else {
    turn.site = std::make_shared<ArrivalSite>(
        ArrivalSite{turn.key, Predictor(ranks_, prices_(call)), {}});
  }
  newest_first_.push_front(turn.site);
  if (newest_first_.size() > kMostSites) {
    newest_first_.back()->started = {};
    newest_first_.pop_back();
  }
  ArrivalSite& site = *turn.site;
  const bool is_awaited = is_blocking || (call.may_wait && site.in_row >= kHabit);
  active->operation->say(word_of(is_awaited, site.is_measured ? &site.own : nullptr));
  site.is_measured = false;
  site.predictor.count_call();
  turn.before = site.taken;
  site.taken = turn.late;
  named_ = site.predictor.named();
  named_gap_ns_ = site.predictor.named_gap_ns();
  active->is_observed = false;
  if (is_blocking) awaited_ = active;
  else site.started = {active, is_awaited};
}

void ArrivalBook::settle_alike(const Call& call) {
  if (!wants(call)) return;
  if (const auto site = find(key_of(call))) settle(*site);
}

void ArrivalBook::settle(const std::shared_ptr<ActiveOp>& active) {
  const auto site = active->turn.site;
  if (site && site->started.active == active) settle(*site);
}

// is_observed tells whether the program itself has waited for the call. If it always has,
// learn_from() finds the call complete.
void ArrivalBook::settle(ArrivalSite& site) {
  if (!site.started.active) return;
  const bool is_observed = site.started.active->is_observed;
  if (site.started.is_awaited) learn_from(site.started.active);
  site.in_row = is_observed ? std::min(site.in_row + 1, kHabit) : 0;
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

// The next call uses what is learned here. All ranks have learned it by then, since each has
// promised to wait for this call first.
void ArrivalBook::learn(const ActiveOp& active) {
  const Turn& turn = active.turn;
  const Notes& notes = *active.operation->notes();
  require(notes.is_complete(), "arrivals: a rank has a sum, but not the words of all its ranks");
  ArrivalSite& site = *turn.site;
  const double shared_end_s = active.overlap ? active.overlap->end_s.load() : 0;
  site.own = {in_ns(notes.waited_s()), in_ns(notes.rest_s(shared_end_s))};
  site.is_measured = true;
  std::vector<Wait> waits;
  for (std::uint32_t word : notes.words()) {
    if ((word & kAwaited) == 0 || waited_in(word) == kNone) return;
    waits.push_back({unpacked(waited_in(word)), unpacked(word & kNone)});
  }
  site.predictor.learn(waits, turn.before);
}

std::string ArrivalBook::evidence(const Call& call) const {
  if (!expects(call)) return {};
  if (!learns_) return str("; arrival=static: taken for late: ", listed(late_));
  const Turn turn = turn_of(call);
  if (!wants(call))
    return str("; arrivals, as the last allreduce knew them: taken for late: ",
               turn.late.empty() ? "none" : listed(turn.late));
  if (!turn.site) return "; arrivals: no such call has been seen at this place";
  const Predictor::Evidence e = turn.site->predictor.evidence();
  if (e.calls == 0) return "; arrivals: nothing is known yet";
  std::string late, hits;
  for (std::int64_t ns : e.lateness_ns) late += str(late.empty() ? "" : " ", in_ms(ns));
  for (int count : e.hits) hits += str(hits.empty() ? "" : " ", count);
  return str("; arrivals, of ", e.calls, " calls: ranks come late by ", late,
             " ms on average; foreseen in the last 32, for one late rank and more: ", hits, "; ",
             e.late.empty() ? str("taken for late: none")
                            : str("taken for late: ", listed(e.late), ", which wins ",
                                  in_ms(e.won_ns), " ms, or loses ", in_ms(e.lost_ns),
                                  " where others are"));
}

}  // namespace paceline
