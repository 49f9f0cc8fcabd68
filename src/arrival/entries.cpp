#include "arrival/entries.hpp"

#include <algorithm>

#include "transport/fingerprint_bits.hpp"

namespace paceline {
namespace {

// The lowest bit of a rank's entry time is 1 if it takes turns with others on a core.
constexpr std::uint64_t kTakesTurns = 1;

std::uint64_t in_ns(double seconds) { return static_cast<std::uint64_t>(1e9 * seconds); }

std::int64_t after(std::uint64_t from, std::uint64_t until) {
  return static_cast<std::int64_t>(until - from);
}

}  // namespace

std::uint64_t EntryBook::key_of(const Fingerprint& call) const {
  return is_tagged(call) ? class_of(call) : sequence_.key_of(class_of(call));
}

std::shared_ptr<EntryBook::Site> EntryBook::site_of(std::uint64_t key) {
  const auto found = std::find_if(newest_first_.begin(), newest_first_.end(),
                                  [&](const auto& site) { return site->key == key; });
  if (found != newest_first_.end()) {
    newest_first_.splice(newest_first_.begin(), newest_first_, found);
  } else {
    newest_first_.push_front(std::make_shared<Site>(Site{key, {}}));
    if (newest_first_.size() > kMostSites) newest_first_.pop_back();
  }
  return newest_first_.front();
}

void EntryBook::learn(const NodeEntries& node, std::uint64_t turn) {
  Made& made = made_[turn % made_.size()];
  entered_.clear();
  std::uint64_t left = 0, turns = 0;
  for (int rank = 0; rank < node.ranks; ++rank) {
    const StageEntries::Call& call = node.at(rank).calls[turn % StageEntries::kCalls];
    entered_.push_back(call.entered.load(std::memory_order_relaxed));
    turns |= entered_.back() & kTakesTurns;
    left = std::max(left, call.left.load(std::memory_order_relaxed));
  }
  std::sort(entered_.begin(), entered_.end());
  const std::uint64_t last = entered_.back(), middle = entered_[(entered_.size() - 1) / 2];
  made.site->decides.learn({after(middle, last), std::max<std::int64_t>(after(last, left), 0),
                            made.by_arrival, turns != 0});
  made.site = nullptr;
}

bool EntryBook::decide(const NodeEntries& node, std::uint64_t call,
                       const Fingerprint& fingerprint) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t oldest = turns_ - std::min<std::uint64_t>(turns_, 2);
  for (std::uint64_t turn = oldest; turn < turns_; ++turn)
    if (const Made& made = made_[turn % made_.size()]; made.site && made.call + 2 <= call)
      learn(node, turn);
  Made& made = made_[turns_++ % made_.size()];
  made = {call, site_of(key_of(fingerprint)), false};
  made.by_arrival = made.site->decides.next();
  sequence_.count(class_of(fingerprint));
  return made.by_arrival;
}

void EntryBook::enter(const NodeEntries& node, double now_s) {
  node.at(node.rank).calls[(turns_ - 1) % StageEntries::kCalls].entered.store(
      (in_ns(now_s) & ~kTakesTurns) | (takes_turns_ ? kTakesTurns : 0),
      std::memory_order_relaxed);
}

void EntryBook::leave(const NodeEntries& node, double now_s) {
  node.at(node.rank).calls[(turns_ - 1) % StageEntries::kCalls].left.store(
      in_ns(now_s), std::memory_order_relaxed);
}

std::optional<ArrivalSwitch::Evidence> EntryBook::evidence(const Fingerprint& fingerprint) const {
  const std::lock_guard lock(mutex_);
  const std::uint64_t key = key_of(fingerprint);
  for (const auto& site : newest_first_)
    if (site->key == key) return site->decides.evidence();
  return {};
}

}  // namespace paceline
