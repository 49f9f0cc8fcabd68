#include "runtime/progress/active_ops.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "runtime/progress/backoff.hpp"
#include "runtime/progress/clock.hpp"

namespace paceline {
namespace {

constexpr std::uint32_t kCallsApart = 16;   // calls between two looks at other nodes
constexpr int kMovesAtLaunch = 64;          // steps of other calls before a call starts

// Idle looks of a load/store call at its peers, under the lock, before it is tracked and waits as
// calls with messages do. If ranks outnumber processors, it yields between the looks.
constexpr int kLooks = 1000, kLooksOversubscribed = 200, kLooksBeforeYield = 2;
// Idle looks if config.meanwhile is set, since only the wait of a tracked call calls it.
constexpr int kLooksBeside = 16;
// Idle looks of start() for the end of a brief call. They take some microseconds, as a handover to
// the progress thread does, which a chain of calls would otherwise pay at every link.
constexpr int kLooksAtStart = 50;

}  // namespace

void ActiveOps::release(Group& group) {
  if (!group.closed || state_.is_under_way(group)) return;
  shm_.release(group);
  released_.push_back(group.context);
}

void ActiveOps::launch(ActiveOp& active, const void* input, void* output,
                       const Fingerprint& fingerprint) {
  Group& group = *active.group;
  // Failures on this node are found before the call sends. A look at other nodes takes as long as a
  // message, so it comes after the start. Load/store calls never look there, so every kCallsApart
  // calls the look comes before the start.
  if (group.last % kCallsApart == 0 || !state_.transport->is_quiet())
    for (int moves = 0; moves < kMovesAtLaunch && driver_.progress(); ++moves) {
    }
  if (!group.broken.empty()) throw Error(group.fault, failures_.reason(group));
  Operation& operation = *active.operation;
  // CommunicatorState::free_op() has opened the first channel only.
  if (ShmChannels* const shm = operation.channel().shm)
    if (ShmChannel* const second = shm->second_if_next(operation.priority())) {
      shm_.open_channel(group, *second, operation.staging_bytes());
      shm->first().show_second();
    }
  const std::uint32_t number = group.next_number();
  group.history[number % SessionState::kHistory] = fingerprint;
  active.warned = false;
  active.overlap = nullptr;
  operation.record(is_tracing_ ? &events_ : nullptr, now_s);
  if (const std::size_t bytes = operation.scratch_bytes()) active.scratch = scratch_.take(bytes);
  try {
    operation.start({input, output, active.scratch.data.get(), active.peers.data()}, number,
                    fingerprint);
  } catch (const std::bad_alloc&) {   // the call is not on the list: nothing else would stop it
    operation.stop(*state_.transport, Error(Fault::resource, "no memory"));
    throw;
  }
}

// Returns an ended operation's scratch and wakes its waiters. The caller takes it off the list.
void ActiveOps::retire(ActiveOp& active) {
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

// Adds a call with notes (arrival/notes.hpp) to the overlap of its communicator's calls under way,
// or begins a new overlap.
void ActiveOps::join_overlap(ActiveOp& active) {
  const auto shares = [&](const auto& other) {
    return other->group == active.group && other->operation->notes();
  };
  std::shared_ptr<Overlap>& overlap = active.group->overlap;
  if (!std::ranges::any_of(state_.active, shares)) overlap = std::make_shared<Overlap>();
  active.overlap = overlap;
}

void ActiveOps::retire_stopped() {
  std::erase_if(state_.active, [&](const auto& active) {
    if (!active->operation->done()) return false;
    retire(*active);
    return true;
  });
}

// Puts a launched operation on the list: drive() advances it and the watchdog sees it.
void ActiveOps::track(const std::shared_ptr<ActiveOp>& active) {
  Operation& operation = *active->operation;
  state_.transport->publish_status(
      {active->group->context, operation.fingerprint(), operation.number(), true});
  active->started_s = now_s();
  if (operation.is_polling()) ++state_.polling;
  if (operation.notes()) join_overlap(*active);
  const auto behind = [&](const auto& other) {
    return other->operation->priority() < operation.priority();
  };
  state_.active.insert(std::find_if(state_.active.begin(), state_.active.end(), behind), active);
}

bool ActiveOps::start(const std::shared_ptr<ActiveOp>& active, const void* input, void* output,
                      const Fingerprint& fingerprint) {
  const bool is_alone = state_.active.empty();
  launch(*active, input, output, fingerprint);
  if (is_alone && state_.active.empty() && ends_at_once(*active)) return false;
  track(active);
  const KeyRange own{active->group->context, active->operation->number()};
  state_.transport->unexpected(own, [&](int peer, const Key& key, const Fingerprint& theirs) {
    failures_.compare(peer, key, theirs);
  });
  // The new call sends before older calls go on, since peers wait for its messages.
  if (!failures_.is_pending()) active->operation->advance(*state_.transport);
  driver_.progress();
  return true;
}

bool ActiveOps::can_run_through(const ActiveOp& active) const {
  const Operation& operation = *active.operation;
  return operation.is_load_store() && !operation.sends_as_well() && state_.active.empty();
}

void ActiveOps::run_through(const std::shared_ptr<ActiveOp>& active, const void* input,
                            void* output, const Fingerprint& fingerprint) {
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
    if (operation.done()) return retire(*active);
    if (!state_.oversubscribed) pause();
    else if (looks >= kLooksBeforeYield && !yields.again()) break;
  }
  track(active);
}

// Returns true if the operation moved. Stops it if memory runs out: it is not on the list, so
// nothing else would.
bool ActiveOps::advance_unlisted(Operation& operation) try {
  return operation.advance(*state_.transport);
} catch (const std::bad_alloc&) {
  operation.stop(*state_.transport, Error(Fault::resource, "no memory"));
  throw;
}

// Polls a brief call for a few microseconds. Returns true if it has ended; else it must be tracked.
bool ActiveOps::ends_at_once(ActiveOp& active) {
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

bool ActiveOps::drive() {
  bool moved = state_.transport->progress();
  for (const std::uint64_t context : std::exchange(released_, {}))
    state_.transport->forget(context);
  // Reports of peers are handled after their messages: the peer may have ended this call and failed
  // in the next one.
  if (failures_.is_own_pending()) failures_.handle();
  for (std::size_t i = 0; i < state_.active.size();) {
    ActiveOp& active = *state_.active[i];
    moved |= active.operation->advance(*state_.transport);
    failures_.inspect(active);
    if (!active.operation->done()) {
      ++i;
      if (active.operation->is_paused()) break;   // the next drive() begins with the most urgent
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

void ActiveOps::start_trace() {
  events_.clear();
  is_tracing_ = true;
}

std::vector<Event> ActiveOps::take_events() {
  is_tracing_ = false;
  return std::exchange(events_, {});
}

}  // namespace paceline
