#include "runtime/communicator.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "base/error.hpp"
#include "base/random.hpp"
#include "runtime/communicator_state.hpp"
#include "runtime/device_call.hpp"
#include "runtime/diagnostics/profile.hpp"
#include "runtime/shared_memory.hpp"
#include "runtime/world.hpp"

namespace paceline {

int Communicator::rank() const { return state_->group->rank; }
int Communicator::size() const { return static_cast<int>(state_->group->ranks.size()); }
int Communicator::nodes() const {
  return count_nodes(*state_->group, state_->session->config().nodes);
}
int Communicator::timeout_ms() const { return state_->session->timeout_of(*state_->group); }
void Communicator::set_timeout(int timeout_ms) {
  state_->session->set_timeout(*state_->group, timeout_ms);
}
std::string Communicator::broken() const {
  return state_->session->failures().broken(*state_->group);
}
bool Communicator::is_called() const { return state_->session->is_called(*state_->group); }

bool Communicator::has_progress_thread() const {
  return state_->session->config().progress != Progress::caller;
}
void Communicator::abort(const std::string& why) {
  state_->session->failures().abort(*state_->group, why);
}

Request Communicator::start(const Call& call) try {
  const Profiled profiled(state_->session->profile(), *state_->group, call, true);
  CommunicatorState& s = *state_;
  s.session->expect_starts();
  s.arrivals.settle(call);
  const bool may_be_known = !call.device.end && !s.arrivals.expects(call);
  const Asked asked{call, s.session->shared().changes()};
  std::shared_ptr<ActiveOp> active;
  if (may_be_known)
    active = s.session->start_again(s.recent, asked, profiled.followed());
  if (!active) {
    const ArrivalBook::Turn turn = s.arrivals.turn_of(call);
    Ready ready = s.prepare(call, turn.late);
    active = s.free_op(*ready.prepared);
    active->take(call, std::move(ready.peers));
    profiled.follow(*active);
    const Ahead ahead(*active, call);
    s.arrivals.begin(turn, call, active, false);
    s.session->start(active, call.input, call.output, ready.fingerprint);
    if (may_be_known)
      s.session->remember(s.recent, asked, ready.prepared, active, ready.fingerprint);
  }
  const std::uint32_t number = active->operation->number();
  return Request(std::move(active), number);
} catch (const Error& error) {
  state_->session->failures().raise_with_call_sites(*state_->group, error);
} catch (const std::bad_alloc&) {
  state_->session->failures().raise_out_of_memory(*state_->group);
}

// run_again() takes a repeated call from the cache.
void Communicator::run(const Call& call) try {
  CommunicatorState& s = *state_;
  const Profiled profiled(s.session->profile(), *s.group, call);
  s.arrivals.settle(call);
  const ArrivalBook::Turn turn = s.arrivals.turn_of(call);
  const Asked asked{call, s.session->shared().changes(), turn.digest};
  if (!call.device.end && s.session->run_again(s.recent, asked)) return;
  Ready ready = s.prepare(call, turn.late);
  const auto active = s.free_op(*ready.prepared);
  active->take(call, std::move(ready.peers));
  const Ahead ahead(*active, call);
  s.arrivals.begin(turn, call, active, true);
  s.session->run(active, call.input, call.output, ready.fingerprint);
  s.arrivals.settle();
  if (active->operation->is_load_store() || (!call.device.end && !s.arrivals.expects(call)))
    s.session->remember(s.recent, asked, ready.prepared, active, ready.fingerprint);
} catch (const Error& error) {
  state_->session->failures().raise_with_call_sites(*state_->group, error);
} catch (const std::bad_alloc&) {
  state_->session->failures().raise_out_of_memory(*state_->group);
}

std::shared_ptr<SharedMemory> Communicator::allocate(std::size_t bytes) {
  const Group& group = *state_->group;
  const WorldConfig& config = state_->session->config();
  const std::uint64_t made = state_->session->calls_of(group);
  const RankCalls calls{rank(), size(), [this](const Call& call) { run(call); }};
  return allocate_shared(
      calls,
      {Random::mix(group.context ^ made >> 32 ^ Random::mix(made & 0xffffffff)), bytes,
       config.shm_dir, group.ranks, on_one_node(group, config.nodes), config.huge_pages},
      state_->session->shared());
}

Communicator Communicator::split(int colour, int key) {
  const int p = size(), me = rank();
  std::vector<std::int32_t> mine{colour, key}, all(2 * static_cast<std::size_t>(p));
  Call call;
  call.collective = Collective::allgather;
  call.type = Type::i32;
  call.input = mine.data();
  call.output = all.data();
  call.count = 2;
  run(call);
  // Every rank derives the same new context from the exchanged values.
  const Group& group = *state_->group;
  const std::uint64_t calls = state_->session->calls_of(group);
  const std::uint64_t context =
      Random::mix(group.context ^ calls >> 32 ^
                  Random::mix(calls << 32 | static_cast<std::uint32_t>(colour)));
  if (colour < 0) return {};
  std::vector<int> members;
  for (int r = 0; r < p; ++r)
    if (all[2 * static_cast<std::size_t>(r)] == colour) members.push_back(r);
  std::stable_sort(members.begin(), members.end(), [&](int a, int b) {
    return all[2 * static_cast<std::size_t>(a) + 1] < all[2 * static_cast<std::size_t>(b) + 1];
  });
  const int position =
      static_cast<int>(std::find(members.begin(), members.end(), me) - members.begin());
  for (int& member : members) member = group.ranks[static_cast<std::size_t>(member)];
  return Communicator(
      open_communicator(state_->session, context, std::move(members), position, &group));
}

Communicator Communicator::subgroup(const std::vector<int>& ranks, std::uint64_t tag) {
  const Group& group = *state_->group;
  std::vector<int> members;
  int position = -1;
  for (int r : ranks) {
    if (r < 0 || r >= size())
      fail(Fault::usage, "subgroup: ", r, " is not a rank; it must be from 0 to ", size() - 1, ".");
    if (r == rank()) position = static_cast<int>(members.size());
    members.push_back(group.ranks[static_cast<std::size_t>(r)]);
  }
  if (position < 0)
    fail(Fault::usage, "subgroup: rank ", rank(), " makes a group that it is not part of.");
  const std::uint64_t context = Random::mix(group.context ^ Random::mix(tag ^ 0x73756267));
  return Communicator(
      open_communicator(state_->session, context, std::move(members), position, &group));
}

// Also makes an uncounted call, which loads code and pages before the program's first call.
void Communicator::attach_together(int timeout_ms) {
  if (!state_->group->one_node) return;
  state_->session->shm().attach_together(*state_->group, timeout_ms);
  std::vector<float> numbers(1u << 18);
  Call call{Collective::allreduce, Type::f32, Op::sum};
  call.input = call.output = numbers.data();
  call.count = numbers.size();
  call.timeout_ms = timeout_ms;
  try {
    if (!state_->prepare(call).prepared->load_store) return;
  } catch (const Error&) {   // the options may be wrong; the program's call will report it
    return;
  }
  state_->session->leave_uncounted(*state_->group);
  run(call);
}

void Communicator::leave_out_sums() {
  state_->leaves_out_sums = true;
  state_->arrivals.stop();
}

FlightRecord Communicator::record(const std::string& reason) const {
  return state_->session->record(reason);
}
void Communicator::start_trace() { state_->session->start_trace(); }
Trace Communicator::take_trace() { return state_->session->take_trace(); }
void Communicator::complete() { state_->session->complete(); }
void Communicator::leave(Leaving why) { state_->session->leave(why); }
Profile& Communicator::profile() { return state_->session->profile(); }

std::string Communicator::explain(const Call& call) const {
  Problem problem = state_->problem_of(call);
  check_call(call, problem.rank, problem.ranks);
  const Layout layout = layout_of(call, problem);
  problem.symmetric = !call.device.end && state_->session->shared()
                       .find(call, problem, layout, state_->group->ranks).has_value();
  problem.in_place = problem.in_place && problem.symmetric;
  problem.late = state_->arrivals.turn_of(call).late;
  const ChoiceInputs now = state_->inputs_of(call, problem);
  const Overrides wish = state_->wish_of(call);
  const Choice c = choose(problem, now, wish);
  std::string copies;   // describes single copies, if attached ranks would choose them
  problem.single_copy = true;
  if (state_->group->one_node && choose(problem, now, wish).algorithm->uses(Access::single_copy))
    copies = str("; ", state_->group->shm->first().describe_copies());
  return str(describe(c),
             nodes() > 1 ? "; " + described_nodes(state_->nodes) : "",
             problem.canonical ? "; numbers=canonical: added in rank order, at once" : "",
             has_op(problem.collective) && state_->session->config().numbers == Numbers::fast
                 ? "; numbers=fast: bits may depend on late ranks" : "",
             copies, nodes() > 1 ? str("; between nodes ", describe(assumed())) : "",
             state_->arrivals.evidence(call), state_->evidence(call, problem, c));
}

const Assumed& Communicator::assumed() const { return state_->assumed; }

}  // namespace paceline
