#include "runtime/progress/session.hpp"

#include <algorithm>
#include <exception>
#include <new>
#include <optional>
#include <thread>
#include <utility>

#include "base/str.hpp"
#include "runtime/progress/backoff.hpp"
#include "runtime/progress/clock.hpp"

namespace paceline {
namespace {

constexpr int kShortSleepUs = 50;   // longest sleep if config.meanwhile must be called
constexpr int kLooksApart = 16;     // idle looks between two calls of config.meanwhile
constexpr int kMovesApart = 64;     // looks that moved something, between two looks at the clock

}  // namespace

// A child of fork() destroys nothing that it has inherited (SessionState::is_inherited()).
std::shared_ptr<Session> Session::make(std::unique_ptr<Transport> transport,
                                       const WorldConfig& config) {
  count_forks();
  return {new Session(std::move(transport), config), [](Session* session) {
            if (!session->state_.is_inherited()) session->end();
          }};
}

// The last pointer may go in the progress thread, which cannot wait for its own end.
void Session::end() {
  if (!thread_.is_current()) delete this;
  else std::thread([this] { delete this; }).detach();
}

Session::Session(std::unique_ptr<Transport> transport, const WorldConfig& config)
    : state_(std::move(transport), config), assumed_(assumed_by(config.machine)) {
  state_.transport->listen(this);
  if (config.progress == Progress::thread) thread_.start();
}

Session::~Session() {
  try {
    std::unique_lock lock(state_.mutex);
    shm_.wait_for_attachers(lock, false);
  } catch (...) {   // a destructor cannot report it; the buffers are freed all the same
  }
  thread_.stop();
  for (const auto& active : state_.active)
    active->operation->stop(*state_.transport, Error(Fault::lost, "this rank has left the world"));
}

void Session::leave(Leaving reason) {
  if (state_.is_inherited()) return;
  const std::string why = "this rank has left the world (finalize); it can make no more calls.";
  std::unique_lock lock(state_.mutex);
  for (const auto& active : state_.active)
    active->operation->stop(*state_.transport, Error(Fault::usage, why));
  std::exception_ptr stopped;
  try {
    shm_.wait_for_attachers(lock, true);
  } catch (...) {   // WorldConfig::idle has ended the wait, such as for Ctrl-C
    stopped = std::current_exception();
    if (!lock.owns_lock()) lock.lock();
  }
  for (const auto& [context, group] : state_.groups)
    failures_.break_group(*group, Fault::usage, why, false);
  progress();   // takes stopped calls off the list: they hold this session
  state_.transport->leave(reason);
  thread_.call_back(lock);
  if (stopped) std::rethrow_exception(stopped);
}

void Session::assume(Assumed assumed) {
  state_.check_owner();
  const std::lock_guard lock(state_.mutex);
  const double beta = assumed.machine.across.beta_s_per_byte;
  if (beta > 0) state_.transport->expect_rate(1 / beta);
  assumed_ = std::move(assumed);
}

void Session::open(const std::shared_ptr<Group>& group) {
  state_.check_owner();
  const std::lock_guard lock(state_.mutex);
  forget_closed();
  if (state_.groups.contains(group->context) || failures_.has_closed(group->context) ||
      shm_.is_taken(group->context))
    fail(Fault::usage, "subgroup: its tag has named another group of this communicator, which ",
         "ranks may still look for; every group needs a new one.");
  group->history.resize(SessionState::kHistory);
  group->last = state_.config.first_number - 1;
  shm_.add(*group);   // first, since it throws if there is no memory
  state_.groups[group->context] = group;
  failures_.opened(*group);
}

std::uint64_t Session::calls_of(const Group& group) const {
  state_.check_owner();
  const std::lock_guard lock(state_.mutex);
  return group.rounds << 32 | group.last;
}

void Session::close(Group& group) {
  if (state_.is_inherited()) return;
  const std::lock_guard lock(state_.mutex);
  group.closed = true;
  ops_.retire_stopped();   // a broken group's calls have been stopped
  ops_.release(group);
  forget_closed();
}

// A closed group stays for the requests that hold it: they may ask how it ended.
void Session::forget_closed() {
  std::erase_if(state_.groups, [&](const auto& entry) {
    const auto& [context, group] = entry;
    if (!group->closed || group.use_count() > 1) return false;
    failures_.closed(context);
    return true;
  });
}

void Session::leave_uncounted(Group& group) {
  state_.check_owner();
  const std::lock_guard lock(state_.mutex);
  group.last = state_.config.first_number - 2;   // the call gets the number before the first one
  group.counts = false;
}

bool Session::is_called(const Group& group) {
  state_.check_owner();
  const std::lock_guard lock(state_.mutex);
  progress();
  if (!group.broken.empty()) throw Error(group.fault, failures_.reason(group));
  bool found = false;
  state_.transport->unexpected({group.context}, [&](int, const Key& key, const Fingerprint&) {
    found |= static_cast<std::int32_t>(key.number - group.last) > 0;
  });
  if (group.shm && group.shm->is_called()) found = true;
  return found;
}

int Session::timeout_of(const Group& group) const {
  state_.check_owner();
  const std::lock_guard lock(state_.mutex);
  return group.timeout_ms > 0 ? group.timeout_ms : state_.config.timeout_ms;
}

void Session::set_timeout(Group& group, int timeout_ms) {
  if (timeout_ms < 1)
    fail(Fault::usage, "timeout_ms is ", timeout_ms, "; it must be at least 1 millisecond.");
  state_.check_owner();
  const std::lock_guard lock(state_.mutex);
  group.timeout_ms = timeout_ms;
}

bool Session::progress() try {
  return ops_.drive();
} catch (...) {
  if (state_.active.empty()) throw;
  fail_under_way();
  return false;
}

void Session::fail_under_way() {
  failures_.break_all_under_way();
  ops_.retire_stopped();
}

void Session::start(const std::shared_ptr<ActiveOp>& active, const void* input, void* output,
                    const Fingerprint& fingerprint) {
  state_.check_owner();
  std::unique_lock lock = thread_.lock_to_start();
  start(lock, active, input, output, fingerprint);
}

void Session::start(std::unique_lock<std::mutex>& lock, const std::shared_ptr<ActiveOp>& active,
                    const void* input, void* output, const Fingerprint& fingerprint) {
  if (ops_.start(active, input, output, fingerprint)) thread_.wake();
  thread_.call_back(lock);
}

// The call is counted before it begins, since a callback may make another one.
bool Session::run_again(CallCache& recent, const Asked& asked) {
  state_.check_owner();
  std::optional<ProgressThread::Waiting> waiting;   // ends without the lock
  std::unique_lock lock(state_.mutex);
  const CallCache::Entry* entry = recent.find(asked);
  const std::shared_ptr<ActiveOp>* const found = entry ? entry->free_operation() : nullptr;
  if (!found) return false;
  const Call& call = asked.call;
  recent.count(call);
  (*found)->take(call);
  const bool runs_through = ops_.can_run_through(**found);
  if (runs_through) ops_.run_through(*found, call.input, call.output, entry->fingerprint);
  else waiting.emplace(thread_);
  if (runs_through && (*found)->operation->done()) return true;
  const std::shared_ptr<ActiveOp> active = *found;   // a callback may change the entry
  if (!runs_through) start(lock, active, call.input, call.output, entry->fingerprint);
  lock.unlock();
  wait_on(*active);
  return true;
}

std::shared_ptr<ActiveOp> Session::start_again(CallCache& recent, const Asked& asked,
                                               CallRecord* record) {
  state_.check_owner();
  std::unique_lock lock = thread_.lock_to_start();
  const CallCache::Entry* entry = recent.find(asked);
  const std::shared_ptr<ActiveOp>* const found = entry ? entry->free_operation() : nullptr;
  if (!found) return nullptr;
  const std::shared_ptr<ActiveOp> active = *found;   // a callback may change the entry
  recent.count(asked.call);
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
  std::unique_lock lock(state_.mutex);
  if (ops_.can_run_through(*active)) {
    ops_.run_through(active, input, output, fingerprint);
    if (active->operation->done()) return;
    lock.unlock();
    return wait_on(*active);
  }
  lock.unlock();
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

// A wait with a time-out of its own, which the watchdog goes by (ActiveOp::limits).
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
      if (meanwhile && meanwhile()) patience.reset();   // it made progress, and may make more
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

// If the operation was stopped, and has yet to be retired, the callback is called here.
void Session::on_complete(ActiveOp& active, std::uint32_t start,
                          std::function<void(bool)> callback) {
  state_.check_owner();
  {
    const std::lock_guard lock(state_.mutex);
    if (!active.operation->has_ended(start)) {
      std::swap(active.on_complete, callback);   // the previous one is destroyed without the lock
      return;
    }
  }
  active.mark_observed(start);
  callback(!active.operation->has_failed(start));
}

bool Session::sleep(ActiveOp& active, std::uint32_t start, int most_ms) {
  state_.check_owner();
  if (!thread_.is_running()) return wait(active, start, 0, most_ms);   // no other thread drives it
  thread_.sleep(*active.operation, start, most_ms);
  if (!active.operation->has_ended(start)) return false;
  if (active.operation->has_failed(start)) failures_.raise(active);
  active.mark_observed(start);
  return true;
}

// Waits for one call after the other, each with its own time-out. Completed calls leave the list.
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

void Session::start_trace() {
  state_.check_owner();
  const std::lock_guard lock(state_.mutex);
  ops_.start_trace();
}

Trace Session::take_trace() {
  state_.check_owner();
  const std::lock_guard lock(state_.mutex);
  Trace trace;
  trace.ranks = state_.transport->ranks();
  trace.events = ops_.take_events();
  for (Event& event : trace.events) event.rank = state_.rank();
  return trace;
}

FlightRecord Session::record(const std::string& reason) const {
  state_.check_owner();
  const std::lock_guard lock(state_.mutex);
  return record_of(state_, reason);
}

}  // namespace paceline
