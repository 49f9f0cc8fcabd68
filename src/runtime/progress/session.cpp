#include "runtime/progress/session.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <new>
#include <utility>

#include "runtime/progress/clock.hpp"
#include "runtime/progress/backoff.hpp"

namespace paceline {
namespace {

constexpr int kSleepUs = 1000;         // a wait that turned out long looks up this often
constexpr int kShortSleepUs = 50;      // likewise, where something else must go on meanwhile
constexpr int kLooksApart = 16;        // before a wait turns out long, at what else goes on
constexpr std::uint32_t kUnseen = 16;  // calls that begin without a look at other nodes

}  // namespace

// A child of fork() keeps what it has inherited till its end.
std::shared_ptr<Session> Session::make(std::unique_ptr<Transport> transport,
                                       const WorldConfig& config) {
  count_forks();
  return {new Session(std::move(transport), config), [](Session* session) {
            if (!session->is_inherited()) session->end();
          }};
}

// A call that nobody holds may be the last to hold the session, and ends in its thread, which
// cannot wait for its own end.
void Session::end() {
  if (std::this_thread::get_id() != thread_.get_id()) delete this;
  else std::thread([this] { delete this; }).detach();
}

Session::Session(std::unique_ptr<Transport> transport, const WorldConfig& config)
    : process_(getpid()),
      config_(config),
      assumed_(assumed_by(config.machine)),
      transport_(std::move(transport)),
      oversubscribed_(transport_->is_oversubscribed()),
      gone_(std::size_t(transport_->ranks())) {
  transport_->listen(this);
  if (config_.progress == Progress::thread) thread_ = std::thread([this] { background(); });
}

Session::~Session() {
  {
    std::unique_lock lock(mutex_);
    wait_for_attachers(lock, false);
    stop_ = true;
  }
  work_.notify_all();
  transport_->wake();
  if (thread_.joinable()) thread_.join();
  for (const auto& active : active_)
    active->operation->stop(*transport_, Error(Fault::lost, "this rank has left the world"));
}

void Session::launch(ActiveOp& active, const void* input, void* output,
                     const Fingerprint& fingerprint) {
  Group& group = *active.group;
  // What went wrong on this node shows before anything new is sent. Other nodes are looked at after
  // it, since a look takes as long as a message, and before it now and then: calls that send
  // nothing leave them alone.
  if (group.last % kUnseen == 0 || !transport_->is_quiet())
    while (progress()) {
    }
  if (!group.broken.empty()) throw Error(group.fault, told(group));
  Operation& operation = *active.operation;
  // Whoever prepared the call has opened the first channel alone.
  if (ShmChannels* const shm = operation.channel().shm)
    if (ShmChannel* const second = shm->second_if_next(operation.priority())) {
      open_channel(group, *second, operation.staging_bytes());
      shm->first().show_second();
    }
  if (++group.last == 0 && group.counts) begin_anew(group);
  group.counts = true;
  const std::uint32_t number = group.last;
  group.history[number % kHistory] = fingerprint;
  active.warned = false;
  active.busy = nullptr;
  operation.record(tracing_ ? &events_ : nullptr, now_s);
  if (const std::size_t bytes = operation.scratch_bytes()) active.scratch = scratch_.take(bytes);
  try {
    operation.start({input, output, active.scratch.data.get(), active.peers.data()}, number,
                    fingerprint);
  } catch (const std::bad_alloc&) {   // nobody will look after it
    operation.stop(*transport_, Error(Fault::resource, "no memory"));
    throw;
  }
}

// With the lock held: the operation is over.
void Session::land(ActiveOp& active) {
  const Operation& operation = *active.operation;
  if (operation.number() == active.group->last)
    transport_->publish_status(
        {active.group->context, operation.fingerprint(), operation.number(), false});
  if (active.scratch.data) scratch_.give(std::move(active.scratch));
  if (operation.is_polling()) --polling_;
  ++landed_;
  if (CallRecord* const record = active.profiled.exchange(nullptr))
    Recorder::complete(*record, !operation.error());
  if (active.on_complete) {
    active.is_told = true;
    callbacks_.emplace_back(std::exchange(active.on_complete, nullptr), !operation.error());
    rouse_thread();   // whoever drives this calls back; some who do must not, since they hold locks
  }
  if (sleepers_ > 0) landing_.notify_all();
}

// With the lock held, as a call of those that say when ranks come begins to be tracked.
void Session::share(ActiveOp& active) {
  const auto shares = [&](const auto& other) {
    return other->group == active.group && other->operation->notes();
  };
  if (!std::ranges::any_of(active_, shares)) active.group->busy = std::make_shared<Busy>();
  active.busy = active.group->busy;
}

// Without the lock meanwhile: a callback may start the next call.
void Session::call_back(std::unique_lock<std::mutex>& lock) {
  while (!callbacks_.empty()) {
    const auto due = std::exchange(callbacks_, {});
    lock.unlock();
    for (const auto& [callback, ok] : due) callback(ok);
    lock.lock();
  }
}

// With the lock held: the operation is under way, and may be for long.
void Session::track(const std::shared_ptr<ActiveOp>& active) {
  const Operation& operation = *active->operation;
  transport_->publish_status(
      {active->group->context, operation.fingerprint(), operation.number(), true});
  active->started_s = now_s();
  if (operation.is_polling()) ++polling_;
  if (operation.notes()) share(*active);
  // The most urgent first, and of equals the oldest.
  const auto behind = [&](const auto& other) {
    return other->operation->priority() < operation.priority();
  };
  active_.insert(std::find_if(active_.begin(), active_.end(), behind), active);
}

int Session::sleep_us() const { return polling_.load() > 0 ? kShortSleepUs : kSleepUs; }

void Session::start(const std::shared_ptr<ActiveOp>& active, const void* input, void* output,
                    const Fingerprint& fingerprint) {
  check_owner();
  ++starting_;
  std::unique_lock lock(mutex_);
  --starting_;
  const bool is_alone = active_.empty();
  launch(*active, input, output, fingerprint);
  if (is_alone && active_.empty() && ends_at_once(*active)) return call_back(lock);
  track(active);
  const std::uint64_t context = active->group->context;
  const std::uint32_t number = active->operation->number();
  transport_->unexpected([&](int peer, const Key& key, const Fingerprint& theirs) {
    if (key.context == context && key.number == number) compare(peer, key, theirs);
  });
  if (trouble_.empty()) active->operation->advance(*transport_);   // peers wait for what it sends
  progress();
  wake_thread();
  call_back(lock);
}

// Somebody waits, and drives everything meanwhile. The last one hands what is left to the thread.
struct Session::Waiting {
  explicit Waiting(Session& owner) : session(owner) { ++session.waiting_; }
  ~Waiting() {
    if (--session.waiting_ != 0 || !session.thread_.joinable()) return;
    const std::lock_guard lock(session.mutex_);
    session.wake_thread();
  }
  Waiting(const Waiting&) = delete;
  Session& session;
};

void Session::run(const std::shared_ptr<ActiveOp>& active, const void* input, void* output,
                  const Fingerprint& fingerprint) {
  check_owner();
  bool load_store;
  {
    const std::lock_guard lock(mutex_);
    load_store = run_through(active, input, output, fingerprint);
    if (load_store && active->operation->done()) return;
  }
  if (load_store) return wait_on(*active);
  const Waiting waiting(*this);
  start(active, input, output, fingerprint);
  wait_on(*active);
}

void Session::wait_on(ActiveOp& active) {
  const Waiting waiting(*this);
  if (!active.operation->done()) wait(active, active.operation->number(), 0, 0);
  if (active.operation->error()) raise(active);
}

void Session::leave(Leaving reason) {
  if (is_inherited()) return;
  const std::string why = "this rank has left the world (finalize); it can make no more calls.";
  std::unique_lock lock(mutex_);
  for (const auto& active : active_) active->operation->stop(*transport_, Error(Fault::usage, why));
  std::exception_ptr stopped;
  try {
    wait_for_attachers(lock, true);
  } catch (...) {   // somebody has had enough of it
    stopped = std::current_exception();
    if (!lock.owns_lock()) lock.lock();
  }
  for (const auto& [context, group] : groups_) break_group(*group, Fault::usage, why, false);
  progress();   // what has been stopped leaves the list: it keeps this session
  transport_->leave(reason);
  call_back(lock);
  if (stopped) std::rethrow_exception(stopped);
}

bool Session::progress() try {
  return drive();
} catch (...) {
  if (active_.empty()) throw;
  fail_under_way();
  return false;
}

bool Session::drive() {
  bool moved = transport_->progress();
  // What a peer reports comes behind its messages, which count first: it may have ended this call
  // and failed in the next.
  const auto is_own = [](const Trouble& t) { return t.tell_others; };
  if (std::any_of(trouble_.begin(), trouble_.end(), is_own)) settle();
  for (std::size_t i = 0; i < active_.size();) {
    ActiveOp& active = *active_[i];
    moved |= active.operation->advance(*transport_);
    if (const auto& mismatch = active.operation->mismatch()) meet(active, *mismatch);
    if (const auto& barred = active.operation->barred()) meet(active, *barred);
    if (const auto& failure = active.operation->failure()) meet(active, *failure);
    if (const ShmChannels* const shm = active.group->shm.get(); shm && shm->lacking())
      meet(active, *shm->lacking());
    if (!active.operation->done()) {
      ++i;
      if (active.operation->is_paused()) break;   // from the most urgent one again
      continue;
    }
    land(active);
    if (active.busy) active.busy->end_s = now_s();
    const std::shared_ptr<Group> closed = active.group->closed ? active.group : nullptr;
    active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(i));
    if (closed) release(*closed);
  }
  if (!trouble_.empty()) settle();
  return moved;
}

// What a rank that waits for this one may wait for in turn: the one that leads on, if it is still
// waited for.
int Session::awaits() const {
  int first = -1;
  for (const auto& active : active_)
    for (int peer : active->operation->waits_for()) {
      if (peer == awaited_) return peer;
      if (first < 0) first = peer;
    }
  return first;
}

bool Session::test(ActiveOp& active, std::uint32_t start) try {
  check_owner();
  if (!active.operation->has_ended(start)) {
    std::unique_lock lock(mutex_, std::try_to_lock);
    if (lock.owns_lock()) {
      if (!progress()) watch_now_and_then();
      call_back(lock);
    }
  }
  if (!active.operation->has_ended(start)) return false;
  if (active.operation->has_failed(start)) raise(active);
  active.tell(start);
  return true;
} catch (const std::bad_alloc&) {
  raise_starved(*active.group);
}

// While somebody waits with a limit of his own.
struct Session::Limited {
  Limited(Session& owner, ActiveOp& waited_for, Limit limit)
      : session(owner), active(waited_for), own(limit) {
    if (own.timeout_ms <= 0) return;
    const std::lock_guard lock(session.mutex_);
    active.limits.push_back(&own);
  }
  ~Limited() {
    if (own.timeout_ms <= 0) return;
    const std::lock_guard lock(session.mutex_);
    std::erase(active.limits, &own);
  }
  Limited(const Limited&) = delete;
  Limited& operator=(const Limited&) = delete;

  Session& session;
  ActiveOp& active;
  const Limit own;
};

bool Session::wait(ActiveOp& active, std::uint32_t start, int timeout_ms, int most_ms) try {
  check_owner();
  const Limited limited(*this, active, {start, now_s(), timeout_ms});
  if (CallRecord* const record = active.profiled) Recorder::wait(*record);
  Backoff patience(oversubscribed_ ? Load::oversubscribed : Load::alone);
  int looks = 0;
  const double begun_s = most_ms > 0 ? now_s() : 0;
  double watched_s = 0;
  const Waiting waiting(*this);
  while (!active.operation->has_ended(start)) {
    bool moved = false;
    {
      std::unique_lock lock(mutex_, std::try_to_lock);
      if (lock.owns_lock()) {
        moved = progress();
        call_back(lock);
      }
    }
    if (moved) {
      patience.reset();
      give_way();
      continue;
    }
    const bool is_patient = patience.next() == Backoff::Next::again;
    if (is_patient && ++looks % kLooksApart != 0) continue;
    const int most_us = config_.meanwhile ? kShortSleepUs : sleep_us();
    if (config_.meanwhile && config_.meanwhile()) patience.reset();   // more will come at once
    else if (is_patient) continue;
    else transport_->rest(most_us, [this] { return can_progress(); });
    if (most_ms > 0 && now_s() - begun_s > 1e-3 * most_ms) {
      watch_between_waits();
      return false;
    }
    if (now_s() - watched_s < kWatchS) continue;
    watched_s = now_s();
    if (config_.idle) config_.idle();
    const std::lock_guard lock(mutex_);
    watch(watched_s);
  }
  if (active.operation->has_failed(start)) raise(active);
  active.tell(start);
  return true;
} catch (const std::bad_alloc&) {
  raise_starved(*active.group);
}

void Session::start_trace() {
  check_owner();
  const std::lock_guard lock(mutex_);
  events_.clear();
  tracing_ = true;
}

Trace Session::take_trace() {
  check_owner();
  const std::lock_guard lock(mutex_);
  tracing_ = false;
  Trace trace;
  trace.ranks = transport_->ranks();
  trace.events = std::move(events_);
  for (Event& event : trace.events) event.rank = transport_->rank();
  events_.clear();
  return trace;
}

}  // namespace paceline
