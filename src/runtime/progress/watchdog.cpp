#include "runtime/progress/watchdog.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/str.hpp"
#include "runtime/fingerprint.hpp"
#include "runtime/progress/clock.hpp"

namespace paceline {
namespace {

// Places in behind() of ranks in a call of another communicator, and of ranks without a call yet.
constexpr std::int64_t kElsewhere = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kNothing = std::numeric_limits<std::int64_t>::min();
constexpr std::size_t kMostNamed = 8;   // ranks that behind() names
constexpr int kMostPutOff = 25;   // consecutive looks at which something moved, before one counts

// Returns text such as "rank 3 is inside allreduce #7".
std::string name_with(const Group& group, int peer, const PeerStatus& doing) {
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

}  // namespace

// While anything moves, messages that came in time may be unread, and the next look is soon. So
// then no peer is called lost, and a peer is called late at every kMostPutOff-th look only. A break
// stops operations but does not change the list.
void Watchdog::watch(double now) try {
  const int warn_ms = state_.config.warn_ms;
  follow_awaited();
  state_.transport->check_peers();
  shm_.look_around();
  const bool moved = driver_.progress();
  put_off_ = moved ? put_off_ + 1 : 0;
  if (put_off_ % kMostPutOff != 0) return;
  if (!moved) {
    look_for_mismatches();
    look_for_lost();
  }
  for (const auto& active : state_.active) {
    const double waited_s = now - active->started_s;
    if (active->operation->done()) continue;
    const Limit limit = limit_of(*active);
    if (limit.timeout_ms > 0 && now - limit.begun_s > 1e-3 * limit.timeout_ms)
      give_up(*active, limit);
    else if (warn_ms > 0 && waited_s > 1e-3 * warn_ms && !active->warned)
      warn(*active, waited_s);
  }
} catch (...) {
  if (state_.active.empty()) throw;
  driver_.fail_under_way();
}

// A peer that this rank waits for may itself wait for another, in memory or for a message. This
// follows each such chain and asks all ranks in it for their status. awaited_ becomes the head of
// the chain that explains most: one that ends at a rank which does not answer, else at a rank which
// waits for none; -1 if all chains are cycles. Requires the lock.
void Watchdog::follow_awaited() {
  std::vector<bool> met(static_cast<std::size_t>(state_.transport->ranks()), false);
  met[static_cast<std::size_t>(state_.rank())] = true;
  const auto is_new = [&](int rank) {   // checks the range: shared memory may hold any value
    return rank >= 0 && rank < state_.transport->ranks() && !met[static_cast<std::size_t>(rank)];
  };
  enum { goes_round, ends, is_silent } worst = goes_round;
  awaited_ = -1;
  for (const auto& active : state_.active)
    for (const int first : active->operation->waits_for()) {
      auto chain = goes_round;
      for (int next = first; is_new(next);) {
        met[static_cast<std::size_t>(next)] = true;
        state_.transport->ask(next);
        const PeerStatus doing = state_.transport->peer_status(next);
        next = doing.current ? doing.awaits : -1;
        if (next < 0) chain = doing.silent ? is_silent : ends;
      }
      if (chain > worst) awaited_ = first;
      worst = std::max(worst, chain);
    }
}

// Returns the peer that this rank names as awaited: awaited_ if a call still waits for it, else the
// first peer that one waits for.
int Watchdog::awaits() const {
  int first = -1;
  for (const auto& active : state_.active)
    for (int peer : active->operation->waits_for()) {
      if (peer == awaited_) return peer;
      if (first < 0) first = peer;
    }
  return first;
}

// Returns the limit that ends first among those of waits for this start; else the call's, the
// group's or the world's.
Limit Watchdog::limit_of(const ActiveOp& active) const {
  const std::uint32_t start = active.operation->number();
  const Limit* first = nullptr;
  const auto end_s = [](const Limit& l) { return l.begun_s + 1e-3 * l.timeout_ms; };
  for (const Limit* limit : active.limits)
    if (limit->start == start && (!first || end_s(*limit) < end_s(*first))) first = limit;
  if (first) return *first;
  int timeout_ms = active.timeout_ms;
  if (timeout_ms == 0) timeout_ms = active.group->timeout_ms;
  return {start, active.started_s, timeout_ms > 0 ? timeout_ms : state_.config.timeout_ms};
}

void Watchdog::watch_if_due() {
  const double now = now_s();
  if (now - watched_s_ < SessionState::kWatchS) return;
  watched_s_ = now;
  watch(now);
}

void Watchdog::watch_between_waits() {
  {
    const std::lock_guard lock(state_.mutex);
    if (now_s() - watched_s_ < SessionState::kWatchS) return;
  }
  if (state_.config.idle) state_.config.idle();
  const std::lock_guard lock(state_.mutex);
  watch_if_due();
}

// Compares the fingerprints that peers publish (PeerStatus): two ranks that disagree about the root
// may wait for each other without a message between them. Requires the lock.
void Watchdog::look_for_mismatches() {
  for (const auto& active : state_.active)
    for (int peer : active->operation->waits_for()) {
      const PeerStatus doing = state_.transport->peer_status(peer);
      const Operation& mine = *active->operation;
      if (doing.context != active->group->context || doing.number != mine.number()) continue;
      if (doing.fingerprint != mine.fingerprint())
        failures_.compare(peer, {doing.context, doing.number}, doing.fingerprint);
    }
  failures_.handle();
}

// Breaks groups whose calls wait for a peer that is gone. Called when all that the peer sent has
// been read. Requires the lock.
void Watchdog::look_for_lost() {
  for (const auto& active : state_.active)
    for (int peer : active->operation->waits_for()) {
      const std::string& why = state_.why_gone(peer);
      if (why.empty()) continue;
      const Group& group = *active->group;
      failures_.break_group(
          *active->group, Fault::lost,
          str(active->operation->describe(), ": ", name_of(group, peer), " is lost: ", why, ". ",
              name_of(group, state_.rank()),
              " waits for it; the communicator cannot be used any more."),
          true);
    }
}

std::string Watchdog::missing(const ActiveOp& active) const {
  std::string out;
  for (int peer : active.operation->waits_for())
    out += str(out.empty() ? "" : "; ",
               name_with(*active.group, peer, state_.transport->peer_status(peer)));
  return out + behind(active);
}

// A peer that this rank waits for may itself wait for another. So this names, ordered by place, the
// ranks that are no further than every awaited peer, those in another communicator, and those that
// do not answer. With several calls under way an awaited peer may have left a later call; then all
// ranks up to that place are named.
std::string Watchdog::behind(const ActiveOp& active) const {
  const Group& group = *active.group;
  // Place: calls since this one, times 2, less 1 inside a call; -1 is this call. It is computed as
  // a difference, since numbers wrap around.
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
    const std::int64_t at = place(state_.transport->peer_status(peer));
    first = std::min(first, at);
    if (at != kElsewhere) last = std::max(last, at);
  }
  if (last > own) first = last;
  std::vector<std::pair<std::int64_t, int>> found;
  for (int peer : group.ranks) {
    if (peer == state_.rank() || std::count(awaited.begin(), awaited.end(), peer)) continue;
    const PeerStatus doing = state_.transport->peer_status(peer);
    const std::int64_t at = place(doing);
    if (doing.silent || (doing.current && (at <= first || at == kElsewhere)))
      found.emplace_back(at, peer);
  }
  std::sort(found.begin(), found.end());
  std::string out;
  for (std::size_t i = 0; i < std::min(found.size(), kMostNamed); ++i)
    out += str(i == 0 ? "; no further: " : ", ",
               name_with(group, found[i].second, state_.transport->peer_status(found[i].second)));
  if (found.size() > kMostNamed) out += str(" and ", found.size() - kMostNamed, " more");
  return out;
}

void Watchdog::give_up(ActiveOp& active, const Limit& limit) {
  failures_.break_group(
      *active.group, Fault::timeout,
      str(active.operation->describe(), ": ", name_of(*active.group, state_.rank()),
          " has waited ", limit.timeout_ms * 1e-3, " s; ", missing(active),
          ". Raise the timeout (timeout_ms), or look at the ranks named here."),
      true);
}

void Watchdog::warn(ActiveOp& active, double waited_s) {
  active.warned = true;
  std::fprintf(stderr, "paceline: %s: %s has waited %.0f s; %s.\n",
               active.operation->describe().c_str(),
               name_of(*active.group, state_.rank()).c_str(), waited_s,
               missing(active).c_str());
}

}  // namespace paceline
