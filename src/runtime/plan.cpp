#include <new>

#include "base/error.hpp"
#include "runtime/communicator.hpp"
#include "runtime/communicator_state.hpp"
#include "runtime/device_call.hpp"
#include "runtime/diagnostics/profile.hpp"

namespace paceline {

// The operation is prepared again when the ranks taken for late change.
struct Plan::State {
  std::shared_ptr<CommunicatorState> communicator;
  Call call;
  std::vector<int> late = {};
  std::shared_ptr<ActiveOp> active = {};
  Fingerprint fingerprint = {};

  void prepare();
};

Plan Communicator::plan(const Call& call) {
  state_->arrivals.settle();
  const auto plan = std::make_shared<Plan::State>(Plan::State{state_, call});
  plan->late = state_->arrivals.turn_of(call).late;
  plan->prepare();
  return Plan(plan);
}

void Plan::State::prepare() {
  Ready ready = communicator->prepare(call, late);
  const auto own = communicator->without_active_ops(*ready.prepared);
  active = communicator->free_op(*own);
  active->take(call, std::move(ready.peers));
  fingerprint = ready.fingerprint;
}

Request Plan::start() try {
  if (state_->active->operation->under_way())
    fail(Fault::usage, state_->active->operation->describe(),
         ": this plan is still under way; wait for it before the next start.");
  CommunicatorState& c = *state_->communicator;
  c.session->expect_starts();
  const Profiled profiled(c.session->profile(), *c.group, state_->call, true);
  ArrivalBook& arrivals = c.arrivals;
  arrivals.settle(state_->active);
  arrivals.settle(state_->call);
  const ArrivalBook::Turn turn = arrivals.turn_of(state_->call);
  if (turn.late != state_->late) {
    state_->late = turn.late;
    state_->prepare();
  }
  profiled.follow(*state_->active);
  const Ahead ahead(*state_->active, state_->call);
  arrivals.begin(turn, state_->call, state_->active, false);
  c.session->start(state_->active, state_->call.input, state_->call.output, state_->fingerprint);
  return Request(state_->active, state_->active->operation->number());
} catch (const Error& error) {
  const CommunicatorState& c = *state_->communicator;
  c.session->failures().raise_with_call_sites(*c.group, error);
} catch (const std::bad_alloc&) {
  state_->communicator->session->failures().raise_out_of_memory(*state_->communicator->group);
}

}  // namespace paceline
