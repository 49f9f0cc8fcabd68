// The part of the session that looks after those who wait: who is lost, who disagrees, who is late.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <limits>

#include "runtime/progress/clock.hpp"
#include "runtime/fingerprint.hpp"
#include "runtime/progress/session.hpp"

namespace paceline {
namespace {

constexpr std::int64_t kElsewhere = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kNothing = std::numeric_limits<std::int64_t>::min();
constexpr std::size_t kMostNamed = 8;   // of ranks that may hold others up

}  // namespace

// With the lock held, every now and then while somebody waits: who is lost, who disagrees, who is
// late. Breaking a group does not change the list of operations; it only ends some of them.
void Session::watch(double now) try {
  follow_awaited();
  transport_->check_peers();
  look_around();
  if (progress()) return;
  look_for_mismatches();
  look_for_lost();
  for (const auto& active : active_) {
    const double waited_s = now - active->started_s;
    if (active->operation->done()) continue;
    const Limit limit = limit_of(*active);
    if (limit.timeout_ms > 0 && now - limit.begun_s > 1e-3 * limit.timeout_ms)
      give_up(*active, limit);
    else if (config_.warn_ms > 0 && waited_s > 1e-3 * config_.warn_ms && !active->warned)
      warn(*active, waited_s);
  }
} catch (...) {
  if (active_.empty()) throw;
  fail_under_way();
}

// With the lock held. Who is waited for may itself wait for another, in memory or for a message:
// whoever stands in such a row is asked what it is about.
void Session::follow_awaited() {
  std::vector<bool> met(static_cast<std::size_t>(transport_->ranks()), false);
  met[static_cast<std::size_t>(transport_->rank())] = true;
  const auto is_new = [&](int rank) {   // it may come out of shared memory
    return rank >= 0 && rank < transport_->ranks() && !met[static_cast<std::size_t>(rank)];
  };
  enum { goes_round, ends, is_silent } most = goes_round;
  awaited_ = -1;
  for (const auto& active : active_)
    for (const int first : active->operation->waits_for()) {
      auto row = goes_round;
      for (int next = first; is_new(next);) {
        met[static_cast<std::size_t>(next)] = true;
        transport_->ask(next);
        const PeerStatus doing = transport_->peer_status(next);
        next = doing.current ? doing.awaits : -1;
        if (next < 0) row = doing.silent ? is_silent : ends;
      }
      if (row > most) awaited_ = first;
      most = std::max(most, row);
    }
}

// The first to end of those who wait for this start; else the call's, or the group's.
Limit Session::limit_of(const ActiveOp& active) const {
  const std::uint32_t start = active.operation->number();
  const Limit* first = nullptr;
  const auto end_s = [](const Limit& l) { return l.begun_s + 1e-3 * l.timeout_ms; };
  for (const Limit* limit : active.limits)
    if (limit->start == start && (!first || end_s(*limit) < end_s(*first))) first = limit;
  if (first) return *first;
  int timeout_ms = active.timeout_ms;
  if (timeout_ms == 0) timeout_ms = active.group->timeout_ms;
  return {start, active.started_s, timeout_ms > 0 ? timeout_ms : config_.timeout_ms};
}

int Session::timeout_of(const Group& group) const {
  const std::lock_guard lock(mutex_);
  return group.timeout_ms > 0 ? group.timeout_ms : config_.timeout_ms;
}

void Session::set_timeout(Group& group, int timeout_ms) {
  if (timeout_ms < 1)
    fail(Fault::usage, "timeout_ms is ", timeout_ms, "; it must be at least 1 millisecond.");
  const std::lock_guard lock(mutex_);
  group.timeout_ms = timeout_ms;
}

void Session::watch_now_and_then() {
  const double now = now_s();
  if (now - watched_s_ < kWatchS) return;
  watched_s_ = now;
  watch(now);
}

// Who waits for a moment at a time drives everything, so the thread leaves it to him, and may never
// wait for so long that a look is due.
void Session::watch_between_waits() {
  {
    const std::lock_guard lock(mutex_);
    if (now_s() - watched_s_ < kWatchS) return;
  }
  if (config_.idle) config_.idle();
  const std::lock_guard lock(mutex_);
  watch_now_and_then();
}

// With the lock held. Two ranks that disagree about the root may wait for each other without a
// message between them: what a peer that is waited for says it is doing is compared as well.
void Session::look_for_mismatches() {
  for (const auto& active : active_)
    for (int peer : active->operation->waits_for()) {
      const PeerStatus doing = transport_->peer_status(peer);
      const Operation& mine = *active->operation;
      if (doing.context != active->group->context || doing.number != mine.number()) continue;
      if (doing.fingerprint != mine.fingerprint())
        compare(peer, {doing.context, doing.number}, doing.fingerprint);
    }
  settle();
}

// With the lock held. A peer that is gone breaks what waits for it, once all that it sent has been
// read.
void Session::look_for_lost() {
  for (const auto& active : active_)
    for (int peer : active->operation->waits_for()) {
      const std::string& why = gone_[static_cast<std::size_t>(peer)];
      if (why.empty()) continue;
      const Group& group = *active->group;
      break_group(*active->group, Fault::lost,
                  str(active->operation->describe(), ": ", name_of(group, peer), " is lost: ", why,
                      ". ", name_of(group, transport_->rank()),
                      " waits for it; the communicator cannot be used any more."),
                  true);
    }
}

std::string Session::name_of(const Group& group, int world_rank) {
  const auto at = std::find(group.ranks.begin(), group.ranks.end(), world_rank);
  const auto position = static_cast<int>(at - group.ranks.begin());
  return str("rank ", position,
             position == world_rank ? "" : str(" (rank ", world_rank, " of the world)"));
}

std::string Session::name_with(const Group& group, int peer, const PeerStatus& doing) {
  std::string where = doing.silent ? "does not answer, and has not been heard of yet"
                                   : "has not called anything yet";
  if (doing.number > 0)
    where = str(doing.silent     ? "does not answer, and was last heard of in "
                : !doing.current ? "was last heard of in "
                : doing.inside ? "is inside "
                               : "has last left ",
                collective_of(doing.fingerprint), " #", doing.number,
                doing.context == group.context ? "" : " of another communicator");
  return str(name_of(group, peer), " ", where);
}

std::string Session::missing(const ActiveOp& active) const {
  std::string out;
  for (int peer : active.operation->waits_for())
    out += str(out.empty() ? "" : "; ",
               name_with(*active.group, peer, transport_->peer_status(peer)));
  return out + behind(active);
}

// Who is waited for may itself wait for another: those that say they are no further than any of the
// former, the last ones first, those that are elsewhere, and those that do not answer. With several
// calls under way a rank that is waited for may say that it has left a later one; then nobody
// before that is beyond doubt.
std::string Session::behind(const ActiveOp& active) const {
  const Group& group = *active.group;
  // In the order of calls, as far as that is known, from the own one on: numbers begin anew.
  const auto place = [&](const PeerStatus& d) {
    if (d.number == 0) return kNothing;
    if (d.context != group.context) return kElsewhere;
    const auto ahead = static_cast<std::int32_t>(d.number - active.operation->number());
    return 2 * std::int64_t{ahead} - (d.inside ? 1 : 0);
  };
  const std::vector<int> awaited = active.operation->waits_for();
  constexpr std::int64_t own = -1;
  std::int64_t first = own, last = own;
  for (int peer : awaited) {
    const std::int64_t at = place(transport_->peer_status(peer));
    first = std::min(first, at);
    if (at != kElsewhere) last = std::max(last, at);
  }
  if (last > own) first = last;
  std::vector<std::pair<std::int64_t, int>> found;
  for (int peer : group.ranks) {
    if (peer == transport_->rank() || std::count(awaited.begin(), awaited.end(), peer)) continue;
    const PeerStatus doing = transport_->peer_status(peer);
    const std::int64_t at = place(doing);
    if (doing.silent || (doing.current && (at <= first || at == kElsewhere)))
      found.emplace_back(at, peer);
  }
  std::sort(found.begin(), found.end());
  std::string out;
  for (std::size_t i = 0; i < std::min(found.size(), kMostNamed); ++i)
    out += str(i == 0 ? "; no further: " : ", ",
               name_with(group, found[i].second, transport_->peer_status(found[i].second)));
  if (found.size() > kMostNamed) out += str(" and ", found.size() - kMostNamed, " more");
  return out;
}

void Session::give_up(ActiveOp& active, const Limit& limit) {
  break_group(*active.group, Fault::timeout,
              str(active.operation->describe(), ": ", name_of(*active.group, transport_->rank()),
                  " has waited ", limit.timeout_ms * 1e-3, " s; ", missing(active),
                  ". Raise the timeout (timeout_ms), or look at the ranks named here."),
              true);
}

void Session::warn(ActiveOp& active, double waited_s) {
  active.warned = true;
  std::fprintf(stderr, "paceline: %s: %s has waited %.0f s; %s.\n",
               active.operation->describe().c_str(),
               name_of(*active.group, transport_->rank()).c_str(), waited_s,
               missing(active).c_str());
}

}  // namespace paceline
