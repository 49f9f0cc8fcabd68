// The part of the session that looks after stages: the memory of a communicator's own that a rank
// shows its peers.
#include <algorithm>
#include <cstdio>

#include "runtime/clock.hpp"
#include "runtime/cpus.hpp"
#include "runtime/session.hpp"

namespace paceline {
namespace {

constexpr int kSeatUs = 20;        // between two looks for stages that are about to come
constexpr int kNapUs = 200;
constexpr double kFindersS = 10;   // that a rank which leaves waits for peers to find its stage

}  // namespace

// Peers that have a stage wait for this one, and nothing was agreed when the communicator was made:
// they hear why there is none, and do not wait till they give up.
void Session::seat(Group& group) try {
  const std::lock_guard lock(mutex_);
  group.stages->open();
} catch (const Error& error) {
  const std::lock_guard lock(mutex_);
  break_group(group, error.fault(),
              str(name_of(group, transport_->rank()), " has no room to share memory in: ",
                  error.what()), true);
  throw Error(group.fault, group.broken);
}

// With the lock held. Of those that are gone nobody can tell whether they had found this rank's.
bool Session::is_seated(const Group& group) {
  const auto is_gone = [&](int peer) { return !gone_[static_cast<std::size_t>(peer)].empty(); };
  return !group.stages->unseen() &&
         (group.stages->is_found() || std::ranges::any_of(group.ranks, is_gone));
}

void Session::seat_together(Group& group, int timeout_ms, const Seating& seating) {
  seat(group);
  Patience patience(crowded_ ? Company::crowded : Company::alone);
  const double begun_s = now_s();
  double watched_s = begun_s;
  for (bool warned = false;;) {
    {
      const std::lock_guard lock(mutex_);
      progress();
      if (is_seated(group)) return;   // and what peers have broken since shows in its first call
      if (!group.broken.empty()) throw Error(group.fault, group.broken);
    }
    if (patience.next() == Patience::Next::again) continue;
    if (config_.meanwhile) config_.meanwhile();
    transport_->rest(kSeatUs, [] { return false; });
    if (now_s() - watched_s < kWatchS) continue;
    watched_s = now_s();
    if (config_.idle) config_.idle();
    const std::lock_guard lock(mutex_);
    watch(watched_s);
    watch_seating(group, watched_s - begun_s, timeout_ms, seating, warned);
  }
}

// With the lock held. Where every peer's has been seen, one of them has yet to see this rank's;
// which one, nobody can tell from here.
void Session::watch_seating(Group& group, double waited_s, int timeout_ms, const Seating& seating,
                            bool& warned) {
  if (is_seated(group)) return;
  const auto unseen = group.stages->unseen();
  const int peer = unseen ? group.ranks[static_cast<std::size_t>(*unseen)] : -1;
  const std::string who = unseen ? name_of(group, peer) : "a rank";
  if (const std::string why = unseen ? gone_[static_cast<std::size_t>(peer)] : ""; !why.empty())
    break_group(group, Fault::lost,
                str(seating.what, ": ", who, " is lost: ", why, ". ",
                    name_of(group, transport_->rank()), " waits for it."),
                true);
  if (timeout_ms > 0 && waited_s > 1e-3 * timeout_ms)
    break_group(group, Fault::timeout,
                str(seating.what, ": ", who, " has not shown its shared memory within ",
                    timeout_ms * 1e-3, " s. ", seating.advice),
                true);
  if (warned || config_.warn_ms == 0 || waited_s < 1e-3 * config_.warn_ms) return;
  warned = true;
  std::fprintf(stderr, "paceline: %s: %s has waited %.0f s for the shared memory of %s.\n",
               seating.what, name_of(group, transport_->rank()).c_str(), waited_s, who.c_str());
}

// With the lock held. A stage goes when its communicator is closed, and every peer has found it and
// has been found. Peers may be waiting for each other's looks: each looks first.
void Session::clear_stages() {
  std::erase_if(left_stages_, [&](const auto& left) {
    if (!left.second) return false;
    StageView& stages = *left.second;
    if (stages.is_idle()) stages.look_around();
    if (!stages.is_idle() || stages.is_needed() || stages.owes_look()) return false;
    transport_->stages()->close(left.first);
    return true;
  });
}

// With the lock held. What a rank shows must not go with it while a peer has yet to look for it.
// Not every rank has had to look at every other: those that leave together do so here.
void Session::wait_for_finders() {
  const auto look_around = [&] {
    for (const auto& left : left_stages_)
      if (left.second) left.second->look_around();
    for (const auto& entry : groups_)
      if (entry.second->stages) entry.second->stages->look_around();
  };
  const auto is_needed = [](StageView* stages) { return stages && stages->is_needed(); };
  const auto are_needed = [&] {
    return std::any_of(left_stages_.begin(), left_stages_.end(),
                       [&](const auto& left) { return is_needed(left.second.get()); }) ||
           std::any_of(groups_.begin(), groups_.end(), [&](const auto& entry) {
             return entry.second->broken.empty() && is_needed(entry.second->stages.get());
           });
  };
  const auto is_gone = [](const std::string& why) { return !why.empty(); };
  for (const double begun_s = now_s(); are_needed() && now_s() - begun_s < kFindersS;) {
    transport_->check_peers();
    if (std::any_of(gone_.begin(), gone_.end(), is_gone)) return;
    progress();
    look_around();
    transport_->rest(kNapUs, [] { return false; });
  }
}

}  // namespace paceline
