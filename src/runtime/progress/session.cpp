#include "runtime/progress/session.hpp"

#include <algorithm>
#include <exception>
#include <thread>
#include <utility>

#include "base/str.hpp"
#include "runtime/progress/clock.hpp"

namespace paceline {

// A child of fork() destroys nothing that it has inherited (SessionState::is_inherited()).
std::shared_ptr<Session> Session::make(std::unique_ptr<Transport> transport,
                                       const WorldConfig& config) {
  count_forks();
  return {new Session(std::move(transport), config), [](Session* session) {
            if (!session->state_.is_inherited()) session->end();
          }};
}

// A call that nobody holds may be the last to hold the session, and ends in the progress thread,
// which cannot wait for its own end.
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
  } catch (...) {   // nobody is there to be told: what peers have yet to look for goes all the same
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
  } catch (...) {   // WorldConfig::idle has ended the wait: Ctrl-C
    stopped = std::current_exception();
    if (!lock.owns_lock()) lock.lock();
  }
  for (const auto& [context, group] : state_.groups)
    failures_.break_group(*group, Fault::usage, why, false);
  progress();   // what has been stopped leaves the list: it holds this session
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
  shm_.add(*group);   // first: it throws where there is no memory
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
  retire_stopped();   // its calls have been stopped, if it is broken
  release(group);
  forget_closed();
}

// Its staging buffers go once its last call has ended, and with the next progress what has come for
// calls that it never made.
void Session::release(Group& group) {
  if (!group.closed || state_.is_under_way(group)) return;
  shm_.release(group);
  released_.push_back(group.context);
}

// Whoever holds a request of a closed group may ask how it ended, and for the call sites of its
// ranks: the group stays for them, and for no one else.
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
  state_.transport->unexpected([&](int, const Key& key, const Fingerprint&) {
    found |= key.context == group.context && static_cast<std::int32_t>(key.number - group.last) > 0;
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
  return drive();
} catch (...) {
  if (state_.active.empty()) throw;
  fail_under_way();
  return false;
}

bool Session::drive() {
  bool moved = state_.transport->progress();
  for (const std::uint64_t context : std::exchange(released_, {}))
    state_.transport->forget(context);
  // What a peer reports comes behind its messages, which count first: it may have ended this call
  // and failed in the next.
  if (failures_.is_own_pending()) failures_.handle();
  for (std::size_t i = 0; i < state_.active.size();) {
    ActiveOp& active = *state_.active[i];
    moved |= active.operation->advance(*state_.transport);
    failures_.inspect(active);
    if (!active.operation->done()) {
      ++i;
      if (active.operation->is_paused()) break;   // drive() begins with the most urgent one again
      continue;
    }
    retire(active);
    if (active.overlap) active.overlap->end_s = now_s();
    const std::shared_ptr<Group> closed = active.group->closed ? active.group : nullptr;
    state_.active.erase(state_.active.begin() + static_cast<std::ptrdiff_t>(i));
    if (closed) release(*closed);
  }
  if (failures_.is_pending()) failures_.handle();
  return moved;
}

void Session::fail_under_way() {
  failures_.break_all_under_way();
  retire_stopped();
}

void Session::start_trace() {
  state_.check_owner();
  const std::lock_guard lock(state_.mutex);
  events_.clear();
  tracing_ = true;
}

Trace Session::take_trace() {
  state_.check_owner();
  const std::lock_guard lock(state_.mutex);
  tracing_ = false;
  Trace trace;
  trace.ranks = state_.transport->ranks();
  trace.events = std::move(events_);
  for (Event& event : trace.events) event.rank = state_.rank();
  events_.clear();
  return trace;
}

FlightRecord Session::record(const std::string& reason) const {
  state_.check_owner();
  const std::lock_guard lock(state_.mutex);
  return record_of(state_, reason);
}

}  // namespace paceline
