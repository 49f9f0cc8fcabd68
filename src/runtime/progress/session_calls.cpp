// The part of the session that starts calls, waits for them and retires them.
#include <algorithm>
#include <new>
#include <utility>

#include "runtime/progress/backoff.hpp"
#include "runtime/progress/clock.hpp"
#include "runtime/progress/session.hpp"

namespace paceline {
namespace {

// A look is one advance() or progress() that moves nothing.
constexpr int kShortSleepUs = 50;      // the longest sleep where config.meanwhile is to be called
constexpr int kLooksApart = 16;        // looks between two calls of config.meanwhile
constexpr int kMovesApart = 64;        // looks at which something moved between two at the time
constexpr std::uint32_t kCallsApart = 16;   // calls between two looks at other nodes
constexpr int kMovesAtLaunch = 64;          // by which a call lets others go on before it starts

// A load/store call looks so often for its peers, under the lock, before it is tracked and waits as
// calls with messages do. Where there are more ranks than processors it yields in between.
constexpr int kLooks = 1000, kLooksOversubscribed = 200, kLooksBeforeYield = 2;
// The same where config.meanwhile is to be called, which only the longer way of waiting does.
constexpr int kLooksBeside = 16;
// start() looks so often for the end of a brief call: for some microseconds, as long as it takes to
// hand the call over to the progress thread, which a chain of calls would do at each of its links.
constexpr int kLooksAtStart = 50;

}  // namespace

void Session::launch(ActiveOp& active, const void* input, void* output,
                     const Fingerprint& fingerprint) {
  Group& group = *active.group;
  // What went wrong on this node shows before anything new is sent. Other nodes are looked at after
  // it, since a look takes as long as a message, and before it now and then: load/store calls
  // never look there.
  if (group.last % kCallsApart == 0 || !state_.transport->is_quiet())
    for (int moves = 0; moves < kMovesAtLaunch && progress(); ++moves) {
    }
  if (!group.broken.empty()) throw Error(group.fault, failures_.reason(group));
  Operation& operation = *active.operation;
  // State::prepare() has opened the first channel alone.
  if (ShmChannels* const shm = operation.channel().shm)
    if (ShmChannel* const second = shm->second_if_next(operation.priority())) {
      shm_.open_channel(group, *second, operation.staging_bytes());
      shm->first().show_second();
    }
  const std::uint32_t number = group.next_number();
  group.history[number % SessionState::kHistory] = fingerprint;
  active.warned = false;
  active.overlap = nullptr;
  operation.record(tracing_ ? &events_ : nullptr, now_s);
  if (const std::size_t bytes = operation.scratch_bytes()) active.scratch = scratch_.take(bytes);
  try {
    operation.start({input, output, active.scratch.data.get(), active.peers.data()}, number,
                    fingerprint);
  } catch (const std::bad_alloc&) {   // it is not in the list: nobody else would stop it
    operation.stop(*state_.transport, Error(Fault::resource, "no memory"));
    throw;
  }
}

// The operation is over: gives back what it held, and tells those who wait for it. The caller takes
// it off the list.
void Session::retire(ActiveOp& active) {
  const Operation& operation = *active.operation;
  if (operation.number() == active.group->last)
    state_.transport->publish_status(
        {active.group->context, operation.fingerprint(), operation.number(), false});
  if (active.scratch.data) scratch_.give(std::move(active.scratch));
  if (operation.is_polling()) --state_.polling;
  if (CallRecord* const record = active.profiled.exchange(nullptr))
    Recorder::complete(*record, !operation.error());
  thread_.tell_ended(active);
}

// A call with notes (engine/notes.hpp) begins. It belongs to the same overlap as those of its
// communicator that are under way; where there are none a new one begins.
void Session::join_overlap(ActiveOp& active) {
  const auto shares = [&](const auto& other) {
    return other->group == active.group && other->operation->notes();
  };
  std::shared_ptr<Overlap>& overlap = active.group->overlap;
  if (!std::ranges::any_of(state_.active, shares)) overlap = std::make_shared<Overlap>();
  active.overlap = overlap;
}

// Operations that have ended leave the list.
void Session::retire_stopped() {
  std::erase_if(state_.active, [&](const auto& active) {
    if (!active->operation->done()) return false;
    retire(*active);
    return true;
  });
}

// Puts an operation that was launched on the list, where drive() advances it and the watchdog sees
// it.
void Session::track(const std::shared_ptr<ActiveOp>& active) {
  const Operation& operation = *active->operation;
  state_.transport->publish_status(
      {active->group->context, operation.fingerprint(), operation.number(), true});
  active->started_s = now_s();
  if (operation.is_polling()) ++state_.polling;
  if (operation.notes()) join_overlap(*active);
  // The most urgent first, and of equals the oldest.
  const auto behind = [&](const auto& other) {
    return other->operation->priority() < operation.priority();
  };
  state_.active.insert(std::find_if(state_.active.begin(), state_.active.end(), behind), active);
}

void Session::start(const std::shared_ptr<ActiveOp>& active, const void* input, void* output,
                    const Fingerprint& fingerprint) {
  state_.check_owner();
  std::unique_lock lock = thread_.lock_to_start();
  start(lock, active, input, output, fingerprint);
}

void Session::start(std::unique_lock<std::mutex>& lock, const std::shared_ptr<ActiveOp>& active,
                    const void* input, void* output, const Fingerprint& fingerprint) {
  const bool is_alone = state_.active.empty();
  launch(*active, input, output, fingerprint);
  if (is_alone && state_.active.empty() && ends_at_once(*active)) return thread_.call_back(lock);
  track(active);
  const std::uint64_t context = active->group->context;
  const std::uint32_t number = active->operation->number();
  state_.transport->unexpected([&](int peer, const Key& key, const Fingerprint& theirs) {
    if (key.context == context && key.number == number) failures_.compare(peer, key, theirs);
  });
  // It sends first, before the calls that were under way go on: peers wait for that.
  if (!failures_.is_pending()) active->operation->advance(*state_.transport);
  progress();
  thread_.wake();
  thread_.call_back(lock);
}

// A load/store call, while nothing else is under way, is not put on the list unless it has to wait
// for long.
bool Session::can_run_through(const ActiveOp& active) const {
  return active.operation->is_load_store() && state_.active.empty();
}

// It may be under way still.
void Session::run_through(const std::shared_ptr<ActiveOp>& active, const void* input, void* output,
                          const Fingerprint& fingerprint) {
  launch(*active, input, output, fingerprint);
  Operation& operation = *active->operation;
  const int most = state_.config.meanwhile ? kLooksBeside
                   : state_.oversubscribed ? kLooksOversubscribed
                                           : kLooks;
  YieldBudget yields;
  for (int looks = 0; looks < most && !operation.mismatch(); ++looks) {
    if (advance_unlisted(operation)) {
      looks = 0;
      yields.reset();
    }
    if (operation.done()) {
      return retire(*active);
    }
    if (!state_.oversubscribed) pause();
    else if (looks >= kLooksBeforeYield && !yields.again()) break;
  }
  track(active);
}

// Whether it moved. Nobody else would stop an operation that is not on the list.
bool Session::advance_unlisted(Operation& operation) try {
  return operation.advance(*state_.transport);
} catch (const std::bad_alloc&) {
  operation.stop(*state_.transport, Error(Fault::resource, "no memory"));
  throw;
}

// Whether a brief call, which was launched while nothing else was under way, is over already; else
// it has to be tracked.
bool Session::ends_at_once(ActiveOp& active) {
  Operation& operation = *active.operation;
  if (state_.oversubscribed || !operation.is_brief()) return false;
  for (int looks = 0; looks < kLooksAtStart && !operation.mismatch(); ++looks) {
    if (advance_unlisted(operation)) looks = 0;
    if (operation.done()) {
      retire(active);
      return true;
    }
    pause();
  }
  return false;
}

// The call is counted before it begins: a callback may make another one.
bool Session::run_again(CallCache& recent, const Asked& asked, ArrivalBook& arrivals) {
  state_.check_owner();
  std::shared_ptr<ActiveOp> active;
  {
    const std::lock_guard lock(state_.mutex);
    const CallCache::Entry* entry = recent.find(asked);
    const std::shared_ptr<ActiveOp>* const found = entry ? entry->free_operation() : nullptr;
    if (!found || !can_run_through(**found)) return false;
    arrivals.begin(asked.call);
    (*found)->take(asked.call);
    run_through(*found, asked.call.input, asked.call.output, entry->fingerprint);
    if ((*found)->operation->done()) return true;
    active = *found;
  }
  wait_on(*active);
  return true;
}

std::shared_ptr<ActiveOp> Session::start_again(CallCache& recent, const Asked& asked,
                                               ArrivalBook& arrivals, CallRecord* record) {
  state_.check_owner();
  std::unique_lock lock = thread_.lock_to_start();
  const CallCache::Entry* entry = recent.find(asked);
  const std::shared_ptr<ActiveOp>* const found = entry ? entry->free_operation() : nullptr;
  if (!found) return nullptr;
  const std::shared_ptr<ActiveOp> active = *found;   // a callback may change the entry
  arrivals.begin(asked.call);
  active->take(asked.call);
  active->profiled = record;
  start(lock, active, asked.call.input, asked.call.output, entry->fingerprint);
  return active;
}

void Session::remember(CallCache& recent, const Asked& asked,
                       const std::shared_ptr<Prepared>& prepared,
                       const std::shared_ptr<ActiveOp>& active, const Fingerprint& fingerprint) {
  state_.check_owner();
  const std::lock_guard lock(state_.mutex);
  recent.keep(asked, prepared, active, fingerprint);
}

void Session::run(const std::shared_ptr<ActiveOp>& active, const void* input, void* output,
                  const Fingerprint& fingerprint) {
  state_.check_owner();
  bool load_store;
  {
    const std::lock_guard lock(state_.mutex);
    load_store = can_run_through(*active);
    if (load_store) run_through(active, input, output, fingerprint);
    if (load_store && active->operation->done()) return;
  }
  if (load_store) return wait_on(*active);
  const ProgressThread::Waiting waiting(thread_);
  start(active, input, output, fingerprint);
  wait_on(*active);
}

void Session::wait_on(ActiveOp& active) {
  const ProgressThread::Waiting waiting(thread_);
  if (!active.operation->done()) wait(active, active.operation->number(), 0, 0);
  if (active.operation->error()) failures_.raise(active);
}

bool Session::test(ActiveOp& active, std::uint32_t start) try {
  state_.check_owner();
  if (!active.operation->has_ended(start)) {
    std::unique_lock lock(state_.mutex, std::try_to_lock);
    if (lock.owns_lock()) {
      if (!progress()) watchdog_.watch_if_due();
      thread_.call_back(lock);
    }
  }
  if (!active.operation->has_ended(start)) return false;
  if (active.operation->has_failed(start)) failures_.raise(active);
  active.mark_observed(start);
  return true;
} catch (const std::bad_alloc&) {
  failures_.raise_out_of_memory(*active.group);
}

// A wait with a time-out of its own: while it lasts the watchdog goes by that (ActiveOp::limits).
struct Session::Limited {
  Limited(Session& owner, ActiveOp& waited_for, Limit limit)
      : session(owner), active(waited_for), own(limit) {
    if (own.timeout_ms <= 0) return;
    const std::lock_guard lock(session.state_.mutex);
    active.limits.push_back(&own);
  }
  ~Limited() {
    if (own.timeout_ms <= 0) return;
    const std::lock_guard lock(session.state_.mutex);
    std::erase(active.limits, &own);
  }
  Limited(const Limited&) = delete;
  Limited& operator=(const Limited&) = delete;

  Session& session;
  ActiveOp& active;
  const Limit own;
};

bool Session::wait(ActiveOp& active, std::uint32_t start, int timeout_ms, int most_ms) try {
  state_.check_owner();
  const Limited limited(*this, active, {start, now_s(), timeout_ms});
  if (CallRecord* const record = active.profiled) Recorder::wait(*record);
  Backoff patience(state_.oversubscribed ? Load::oversubscribed : Load::alone);
  int looks = 0, moves = 0;
  const double begun_s = most_ms > 0 ? now_s() : 0;
  double watched_s = 0;
  const ProgressThread::Waiting waiting(thread_);
  while (!active.operation->has_ended(start)) {
    bool moved = false;
    {
      std::unique_lock lock(state_.mutex, std::try_to_lock);
      if (lock.owns_lock()) {
        moved = progress();
        thread_.call_back(lock);
      }
    }
    if (moved) {
      patience.reset();
      thread_.give_way();
      if (++moves % kMovesApart != 0) continue;
    } else {
      const bool is_patient = patience.next() == Backoff::Next::again;
      if (is_patient && ++looks % kLooksApart != 0) continue;
      const auto& meanwhile = state_.config.meanwhile;
      const int most_us = meanwhile ? kShortSleepUs : state_.sleep_us();
      if (meanwhile && meanwhile()) patience.reset();   // it moved something: more comes at once
      else if (is_patient) continue;
      else state_.transport->rest(most_us, [this] { return state_.can_progress(); });
    }
    if (most_ms > 0 && now_s() - begun_s > 1e-3 * most_ms) {
      watchdog_.watch_between_waits();
      return false;
    }
    if (now_s() - watched_s < SessionState::kWatchS) continue;
    watched_s = now_s();
    if (state_.config.idle) state_.config.idle();
    const std::lock_guard lock(state_.mutex);
    watch(watched_s);
  }
  if (active.operation->has_failed(start)) failures_.raise(active);
  active.mark_observed(start);
  return true;
} catch (const std::bad_alloc&) {
  failures_.raise_out_of_memory(*active.group);
}

// Where the operation was stopped, and has yet to be retired, the callback is called here, and
// retire() finds none.
void Session::on_complete(ActiveOp& active, std::uint32_t start,
                          std::function<void(bool)> callback) {
  state_.check_owner();
  {
    const std::lock_guard lock(state_.mutex);
    if (!active.operation->has_ended(start)) {
      std::swap(active.on_complete, callback);   // one before it goes without the lock
      return;
    }
  }
  active.mark_observed(start);
  callback(!active.operation->has_failed(start));
}

bool Session::sleep(ActiveOp& active, std::uint32_t start, int most_ms) {
  state_.check_owner();
  if (!thread_.is_running()) return wait(active, start, 0, most_ms);   // nobody else would go on
  thread_.sleep(*active.operation, start, most_ms);
  if (!active.operation->has_ended(start)) return false;
  if (active.operation->has_failed(start)) failures_.raise(active);
  active.mark_observed(start);
  return true;
}

// Waits for one after the other, each by its own time-out. What completes leaves the list.
void Session::complete() {
  for (;;) {
    std::shared_ptr<ActiveOp> active;
    std::uint32_t start = 0;
    {
      state_.check_owner();
      const std::lock_guard lock(state_.mutex);
      if (state_.active.empty()) return;
      active = state_.active.front();
      start = active->operation->number();
    }
    wait(*active, start, 0, 0);
  }
}

}  // namespace paceline
