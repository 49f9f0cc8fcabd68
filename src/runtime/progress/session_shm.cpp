// The part of the session that looks after ranks that share memory: their stages, and the calls
// that send nothing.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>
#include <utility>

#include "runtime/progress/clock.hpp"
#include "runtime/progress/backoff.hpp"
#include "runtime/fingerprint.hpp"
#include "runtime/progress/session.hpp"

namespace paceline {
namespace {

// A call that sends nothing looks so often for its peers before it waits like any other. Where
// there are more ranks than processors it lets others run in between.
constexpr int kLooks = 1000, kLooksOversubscribed = 200, kLooksBeforeYield = 2;
// Likewise, where something else must go on meanwhile: who waits like any other looks at that.
constexpr int kLooksBeside = 16;
// Who only starts a brief call looks for some microseconds: so long it takes to hand it over to
// another thread, which a chain of calls would do at each of its links.
constexpr int kLooksAtStart = 50;
constexpr int kNapUs = 200;

}  // namespace

void Session::open_staging(Group& group, std::size_t slot_bytes) {
  const std::lock_guard lock(mutex_);
  open_channel(group, group.shm->first(), slot_bytes);
}

// With the lock held. Peers that have a staging buffer wait for this one, and nothing was agreed
// when the communicator was made: they hear why there is none, and do not wait till they give up.
void Session::open_channel(Group& group, ShmChannel& channel, std::size_t slot_bytes) try {
  channel.open(slot_bytes);
} catch (const Error& error) {
  break_group(group, error.fault(),
              str(name_of(group, transport_->rank()), " has no room to share memory in: ",
                  error.what()), true);
  throw Error(group.fault, group.broken);
}

// While ranks start: one that is gone will not come. One that has left may have done so because
// another has died, which is then seen here as well.
void Session::look_for_lost_in(const Group& group, double& looked_s) {
  if (now_s() - looked_s < kWatchS) return;
  looked_s = now_s();
  if (config_.idle) config_.idle();
  const std::lock_guard lock(mutex_);
  transport_->check_peers();
  progress();
  if (!group.broken.empty()) throw Error(group.fault, group.broken);
  for (const bool left : {false, true})
    for (int rank : group.ranks)
      if (const std::string& why = gone_[static_cast<std::size_t>(rank)];
          !why.empty() && why.starts_with("it has left") == left)
        fail(Fault::lost, "start-up: ", name_of(group, rank), " is lost: ", why, ".");
}

// Where it fails there is nothing that a peer should still find.
void Session::attach_together(Group& group, int timeout_ms) try {
  open_staging(group);
  const double begun_s = now_s();
  double looked_s = begun_s;
  const auto beat = [&](int peer, const char* what) {
    if (now_s() - begun_s > 1e-3 * timeout_ms)
      fail(Fault::timeout, "start-up: ", name_of(group, peer), " has not ", what,
           " shared memory within ", timeout_ms * 1e-3,
           " s. Is it still there? PACELINE_START_TIMEOUT_MS is the limit.");
    look_for_lost_in(group, looked_s);
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  };
  const auto rank_at = [&](int position) {
    return group.ranks[static_cast<std::size_t>(position)];
  };
  while (true) {
    std::unique_lock lock(mutex_);
    const auto unseen = group.shm->first().unseen();
    if (const auto& lacking = group.shm->first().lacking()) {
      break_group(group, lacking->fault(),
                  str("start-up: ", name_of(group, transport_->rank()), ": ", lacking->what()),
                  true);
      throw Error(group.fault, group.broken);
    }
    const std::vector<int> pending_attachers = group.shm->first().pending_attachers();
    lock.unlock();
    if (!unseen && pending_attachers.empty()) return;
    if (unseen) beat(rank_at(*unseen), "shown its");
    else beat(pending_attachers[0], "found this rank's");
  }
} catch (...) {
  const std::lock_guard lock(mutex_);
  has_waited_ = true;
  throw;
}

void Session::leave_uncounted(Group& group) {
  const std::lock_guard lock(mutex_);
  group.last = config_.first_number - 2;   // it gets the number before: 0, nothing was called
  group.counts = false;
}

// With the lock held. A stage goes when its communicator is closed, and every peer has found it and
// has been found. Peers may be waiting for each other's looks: each looks first.
void Session::clear_stages() {
  std::erase_if(left_shm_, [&](const auto& left) {
    ShmChannels& shm = *left.second;
    if (shm.is_idle()) shm.look_around();
    if (!shm.is_idle() || shm.has_unattached_peers() || !shm.needed_by().empty()) return false;
    shm.close();
    return true;
  });
  if (StagingBuffers* const stages = transport_->stages()) stages->clear();
}

// With the lock held. What a peer shows, and has yet to be found by this rank, keeps it from going.
void Session::look_around() {
  for (const auto& left : left_shm_) left.second->look_around();
  for (const auto& entry : groups_)
    if (entry.second->shm && entry.second->broken.empty()) entry.second->shm->look_around();
  if (StagingBuffers* const stages = transport_->stages()) stages->clear();
}

// With the lock held: who may still need what this rank shows, and is there.
std::vector<int> Session::pending_attachers() {
  std::vector<int> ranks;
  const auto add = [&](ShmChannels* shm) {
    if (!shm) return;
    for (int rank : shm->needed_by())
      if (gone_[static_cast<std::size_t>(rank)].empty()) ranks.push_back(rank);
  };
  for (const auto& left : left_shm_) add(left.second.get());
  for (const auto& entry : groups_)
    if (entry.second->broken.empty()) add(entry.second->shm.get());
  return ranks;
}

// With the lock held, but while it rests. What a rank shows must not go with it while a peer has
// yet to look for it: one that computes comes to it in its next call, of whatever communicator, and
// is waited for as long as a call would be. One that waits in a call looks around there, unless it
// has yet to make the communicator; then it may wait for this very rank. What is owed to one whose
// ring is full waits for it as briefly.
void Session::wait_for_attachers(std::unique_lock<std::mutex>& lock, bool may_stop) {
  if (std::exchange(has_waited_, true)) return;
  const double begun_s = now_s();
  for (bool warned = false;;) {
    transport_->check_peers();
    progress();
    look_around();
    const double waited_s = now_s() - begun_s;
    const auto is_late = [&](int rank) {
      const int limit_ms =
          transport_->peer_status(rank).inside ? config_.attachers_ms : config_.timeout_ms;
      return limit_ms > 0 && waited_s > 1e-3 * limit_ms;
    };
    const std::vector<int> ranks = pending_attachers();
    const auto awaited = std::find_if_not(ranks.begin(), ranks.end(), is_late);
    const bool owes = transport_->owes() && waited_s < 1e-3 * config_.attachers_ms;
    if (awaited == ranks.end() && !owes) return;
    if (awaited != ranks.end() && config_.warn_ms > 0 && waited_s > 1e-3 * config_.warn_ms &&
        !std::exchange(warned, true))
      std::fprintf(stderr, "paceline: rank %d leaves, and has waited %.0f s for rank %d, which "
                           "has yet to make a call that it has made.\n",
                   transport_->rank(), waited_s, *awaited);
    lock.unlock();
    if (config_.meanwhile) config_.meanwhile();
    transport_->rest(kNapUs, [] { return false; });
    if (may_stop && config_.idle) config_.idle();
    lock.lock();
  }
}

// With the lock held. A call that sends nothing, while nothing else is under way, needs no
// book-keeping unless it has to wait for long. Whether it was such a call, which may be under way.
bool Session::run_through(const std::shared_ptr<ActiveOp>& active, const void* input, void* output,
                          const Fingerprint& fingerprint) {
  if (!active->operation->is_load_store() || !active_.empty()) return false;
  launch(*active, input, output, fingerprint);
  Operation& operation = *active->operation;
  const int most = config_.meanwhile ? kLooksBeside : oversubscribed_ ? kLooksOversubscribed :
      kLooks;
  YieldBudget yields;
  for (int looks = 0; looks < most && !operation.mismatch(); ++looks) {
    if (operation.advance(*transport_)) {
      looks = 0;
      yields.reset();
    }
    if (operation.done()) {
      land(*active);
      return true;
    }
    if (!oversubscribed_) pause();
    else if (looks >= kLooksBeforeYield && !yields.again()) break;
  }
  track(active);
  return true;
}

// With the lock held, of a call that was launched while nothing else was under way.
bool Session::ends_at_once(ActiveOp& active) {
  Operation& operation = *active.operation;
  if (oversubscribed_ || !operation.is_brief()) return false;
  for (int looks = 0; looks < kLooksAtStart && !operation.mismatch(); ++looks) {
    if (operation.advance(*transport_)) looks = 0;
    if (operation.done()) {
      land(active);
      return true;
    }
    pause();
  }
  return false;
}

bool Session::run_again(CallCache& recent, const Asked& asked) {
  check_owner();
  std::shared_ptr<ActiveOp> active;
  {
    const std::lock_guard lock(mutex_);
    const CallCache::Entry* entry = recent.find(asked);
    if (!entry || entry->active->operation->under_way()) return false;
    if (!run_through(entry->active, asked.call.input, asked.call.output, entry->fingerprint))
      return false;
    if (entry->active->operation->done()) return true;
    active = entry->active;
  }
  wait_on(*active);
  return true;
}

void Session::remember(CallCache& recent, const Asked& asked,
                       const std::shared_ptr<ActiveOp>& active, const Fingerprint& fingerprint) {
  const std::lock_guard lock(mutex_);
  recent.keep(asked, active, fingerprint);
}

bool Session::can_progress() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return true;
  return std::any_of(active_.begin(), active_.end(),
                     [](const auto& active) { return active->operation->can_progress(); });
}

// A peer's stage shows another call than this rank's.
void Session::meet(const ActiveOp& active, const CallMismatch& mismatch) {
  const Group& group = *active.group;
  const CallStamp &mine = mismatch.mine, &theirs = mismatch.theirs;
  const int them = mismatch.position, me = group.rank;
  const std::string end = ". The communicator cannot be used any more.";
  std::string what = str("calls before it differ between rank ", them, " and rank ", me);
  if (mine.number() != theirs.number())
    what = str("rank ", them, " is in ", describe(theirs.fingerprint), " as its call #",
               theirs.number(), ", rank ", me, " in ", describe(mine.fingerprint), " as its call #",
               mine.number(), ": the order of calls differs");
  else if (mine.fingerprint != theirs.fingerprint)
    what = difference(mine.fingerprint, me, theirs.fingerprint, them);
  const CallStamp& made = is_refusal(mine.fingerprint) ? theirs : mine;
  trouble_.push_back({group.context, Fault::mismatch,
                      str(collective_of(made.fingerprint), " #", mine.number(), ": ", what, end),
                      true});
}

// The system let ranks copy each other's memory when they started, and does not now.
void Session::meet(const ActiveOp& active, const CopyDenied& barred) {
  const Group& group = *active.group;
  const std::string peer = name_of(group, group.ranks[static_cast<std::size_t>(barred.position)]);
  trouble_.push_back(
      {group.context, Fault::resource,
       str(active.operation->describe(), ": ", name_of(group, transport_->rank()), " cannot ",
           barred.writes ? "write into" : "read", " the buffer of ", peer, ": ",
           std::strerror(barred.error),
           ". PACELINE_SINGLE_COPY=off does without. The communicator ",
           "cannot be used any more."),
       true});
}

// Its device cannot go on, or this rank lacks what it takes to reach a peer's stage. The peers are
// told.
void Session::meet(const ActiveOp& active, const Error& failure) {
  const Group& group = *active.group;
  trouble_.push_back({group.context, failure.fault(),
                      str(active.operation->describe(), ": ", name_of(group, transport_->rank()),
                          ": ", failure.what(), " The communicator cannot be used any more."),
                      true});
}

}  // namespace paceline
