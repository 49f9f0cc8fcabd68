#include "runtime/communicator.hpp"

#include <algorithm>
#include <new>
#include <numeric>
#include <utility>

#include "base/error.hpp"
#include "base/random.hpp"
#include "runtime/progress/clock.hpp"
#include "runtime/communicator_state.hpp"
#include "runtime/device_call.hpp"
#include "runtime/fingerprint.hpp"
#include "runtime/late_prices.hpp"
#include "runtime/bootstrap/machine_choice.hpp"
#include "runtime/profiled.hpp"
#include "runtime/diagnostics/record_signal.hpp"
#include "runtime/shared_memory.hpp"
#include "runtime/world.hpp"
#include "tune/late.hpp"

namespace paceline {
namespace {

std::string in_us(std::int64_t ns) { return str(double(ns / 10) / 100); }

constexpr std::uint64_t kProbing = 2;   // a communicator as long as the start

Communicator open(const std::shared_ptr<Session>& session, std::uint64_t context,
                  std::vector<int> ranks, int rank, const Group* made_of = nullptr) {
  auto group = std::make_shared<Group>();
  if (made_of) group->timeout_ms = made_of->timeout_ms;
  group->context = context;
  group->ranks = std::move(ranks);
  group->rank = rank;
  return Communicator(std::make_shared<Communicator::State>(session, group));
}

}  // namespace

Problem Communicator::State::problem_of(const Call& call) const {
  Problem p;
  p.collective = call.collective;
  p.ranks = static_cast<int>(group->ranks.size());
  p.rank = group->rank;
  p.root = has_root(call.collective) ? call.root : 0;
  const Numbers numbers = session->config().numbers;
  const bool exact = !has_op(p.collective) || is_exact(call.op, call.type);
  p.canonical = numbers == Numbers::canonical && !exact;
  p.fast = numbers == Numbers::fast || exact;
  p.uneven = call.uneven;
  p.one_node = group->one_node || p.ranks == 1;
  p.single_copy = group->one_node ? group->shm->first().are_attached() : p.one_node;
  p.nodes = nodes;
  p.node_staging = !nodes.empty() && session->config().node_staging > 0;
  if (call.device.end) leave_out_shared(p);
  return p;
}

// What the call asks for, else what the options do.
Overrides Communicator::State::wish_of(const Call& call) const {
  const WorldConfig& config = session->config();
  Overrides wish{call.algorithm, call.cut};
  if (call.collective == Collective::barrier) return wish;
  if (wish.algorithm.empty())
    wish.algorithm = config.algorithms[static_cast<std::size_t>(call.collective)];
  if (wish.cut.segments == 0) wish.cut.segments = config.segments;
  if (wish.cut.window == 0) wish.cut.window = config.window;
  return wish;
}

// Where the call takes another algorithm for some late ranks: for one, or it would for no others.
bool Communicator::State::has_notes(const Call& call, const Problem& problem,
                                    const Choice& choice) const {
  const Overrides wish = wish_of(call);
  const bool is_asked = !wish.algorithm.empty() || wish.cut != Cut{};
  if (!arrivals.learns() || !arrivals.wants(call) || is_asked) return false;
  Problem aware = problem;
  if (aware.late.empty()) aware.late = {0};
  return form_for_late(aware, inputs_of(call, aware), choice).has_value();
}

CallPrices Communicator::State::prices_of(const Call& call) const {
  const Problem problem = problem_of(call);
  const ChoiceInputs now = inputs_of(call, problem);
  return prices_for_late(problem, now, choose(problem, now, wish_of(call)));
}

std::optional<Choice> Communicator::State::by_arrival(const Call& call, const Problem& problem,
                                                      const Choice& usual) const {
  const Overrides wish = wish_of(call);
  const bool is_asked = !wish.algorithm.empty() || wish.cut != Cut{};
  if (!group->one_node || is_asked || call.uneven || leaves_out_sums || call.device.end ||
      !expected_by(session->config().arrival).learns_in_node)
    return {};
  return chosen_by_arrival(problem, inputs_of(call, problem), usual);
}

std::string Communicator::State::evidence(const Call& call, const Problem& problem,
                                          const Choice& usual) {
  const auto other = by_arrival(call, problem, usual);
  if (!other) return {};
  const auto e = group->shm->first().entry_book().evidence(prepare(call).fingerprint);
  if (!e) return "; arrivals in the node: no such call has been seen at this place";
  return str("; arrivals in the node, of ", e->calls, " calls: a rank came late in ", e->late,
             " of the last 32; then ", in_us(e->usual_ns), " us are left as usual, ",
             in_us(e->arrival_ns), " us by ", other->algorithm->name, "; taken: ",
             e->by_arrival ? other->algorithm->name : usual.algorithm->name);
}

Ready Communicator::State::prepare(const Call& call, const std::vector<int>& late) {
  session->check_owner();
  check_call(call, group->rank, static_cast<int>(group->ranks.size()));
  Problem problem = problem_of(call);
  problem.late = late;
  const Layout layout = layout_of(call, problem);
  std::optional<SharedPlaces> places;
  if (!call.device.end) places = session->shared().find(call, problem, layout, group->ranks);
  problem.symmetric = places.has_value();
  Ready ready{prepare(call, problem, layout), {}, {}};
  const Prepared& p = *ready.prepared;
  if (!p.shared) places.reset();   // the algorithm does without
  ready.fingerprint =
      fingerprint_of(call, p.choice, places ? std::optional(places->name) : std::nullopt);
  if (places) ready.peers = std::move(places->peers);
  return ready;
}

CompiledSchedule Communicator::State::compiled(const Choice& choice, const Problem& problem,
                                               const Layout& layout, const Call& call) const {
  CompiledSchedule bound = compile(choice, problem, layout, call, staging_limits());
  const bool in_nodes = choice.algorithm->by_nodes() && stages_in_nodes(problem);
  if (leaves_out_sums) leave_out_combining(bound, choice.algorithm->is_load_store() || in_nodes);
  return bound;
}

std::shared_ptr<Prepared> Communicator::State::prepare(const Call& call, const Problem& problem,
                                                       const Layout& layout) {
  CallShape shape{call, problem.in_place, problem.symmetric, problem.late};
  shape.call.input = shape.call.output = nullptr;
  const std::lock_guard lock(mutex);
  if (auto known = book.find(shape)) return known;

  Problem alike = problem;  // whether a rank is in place is its own affair and must not decide
  alike.in_place = problem.in_place && problem.symmetric;   // but where its peers must follow it
  const Choice choice = choose(alike, inputs_of(call, problem), wish_of(call));
  auto prepared = std::make_shared<Prepared>();
  prepared->shape = std::move(shape);
  prepared->shared = choice.algorithm->uses(Access::symmetric);
  prepared->load_store = choice.algorithm->is_load_store();
  prepared->has_notes = has_notes(call, alike, choice);
  CompiledSchedule bound = compiled(choice, problem, layout, call);
  if (prepared->has_notes) add_notes(bound);
  const auto other = by_arrival(call, alike, choice);
  std::size_t slot_bytes = bound.scratch_bytes;
  if (other) {
    CompiledSchedule arriving = compiled(*other, problem, layout, call);
    slot_bytes = std::max(slot_bytes, arriving.scratch_bytes);
    bound.by_arrival = std::make_shared<const CompiledSchedule>(std::move(arriving));
  }
  if (bound.load_store) session->shm().open_staging(*group, slot_bytes);
  if (bound.mixed) session->shm().open_staging(*group, bound.staging_bytes);
  prepared->bound = std::make_shared<CompiledSchedule>(std::move(bound));
  prepared->choice = hash_of(choice) ^ digest_of(group->ranks) ^
                     (prepared->shared && problem.in_place ? 1 : 0) ^
                     digest_of(problem.late) << 1 ^ (prepared->has_notes ? 4 : 0) ^
                     (other ? hash_of(*other) : 0);
  book.add(prepared);
  return prepared;
}

// An operation that nobody holds any more and that has ended, or a new one.
std::shared_ptr<ActiveOp> Communicator::State::free_op(Prepared& prepared) {
  const std::lock_guard lock(mutex);
  for (const auto& active : prepared.active_ops)
    if (active.use_count() == 1 && !active->operation->under_way()) return active;
  auto active = std::make_shared<ActiveOp>();
  active->session = session;
  active->group = group;
  active->operation = operation_of(
      prepared, Channel{group->context, &group->ranks, group->shm.get(), now_s});
  prepared.active_ops.push_back(active);
  return active;
}

// A copy; other threads may be adding operations to the original.
std::shared_ptr<Prepared> Communicator::State::without_flights(const Prepared& prepared) {
  const std::lock_guard lock(mutex);
  auto copy = std::make_shared<Prepared>(prepared);
  copy->active_ops.clear();
  return copy;
}

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
  return state_->session->config().progress == Progress::thread;
}
void Communicator::abort(const std::string& why) {
  state_->session->failures().abort(*state_->group, why);
}

Request Communicator::start(const Call& call) try {
  const Profiled profiled(*state_->session, *state_->group, call, true);
  State& s = *state_;
  s.arrivals.settle(call);
  const bool may_be_known = !call.device.end && !s.arrivals.expects(call);
  const Asked asked{call, s.session->shared().changes()};
  std::shared_ptr<ActiveOp> active;
  if (may_be_known)
    active = s.session->start_again(s.recent, asked, s.arrivals, profiled.followed());
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

// What was asked for before is started at once.
void Communicator::run(const Call& call) try {
  State& s = *state_;
  const Profiled profiled(*s.session, *s.group, call);
  s.arrivals.settle(call);
  const ArrivalBook::Turn turn = s.arrivals.turn_of(call);
  const Asked asked{call, s.session->shared().changes(), turn.digest};
  if (!call.device.end && s.session->run_again(s.recent, asked, s.arrivals)) return;
  Ready ready = s.prepare(call, turn.late);
  const auto active = s.free_op(*ready.prepared);
  active->take(call, std::move(ready.peers));
  const Ahead ahead(*active, call);
  s.arrivals.begin(turn, call, active, true);
  s.session->run(active, call.input, call.output, ready.fingerprint);
  s.arrivals.settle();
  if (active->operation->is_load_store())
    s.session->remember(s.recent, asked, ready.prepared, active, ready.fingerprint);
} catch (const Error& error) {
  state_->session->failures().raise_with_call_sites(*state_->group, error);
} catch (const std::bad_alloc&) {
  state_->session->failures().raise_out_of_memory(*state_->group);
}

std::shared_ptr<SharedMemory> Communicator::allocate(std::size_t bytes) {
  const Group& group = *state_->group;
  const WorldConfig& config = state_->session->config();
  const std::uint64_t calls = state_->session->calls_of(group);
  return allocate_shared(
      *this, {Random::mix(group.context ^ calls >> 32 ^ Random::mix(calls & 0xffffffff)), bytes,
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
  // Every rank derives the same new context from what has been agreed: no second exchange is
  // needed.
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
  return open(state_->session, context, std::move(members), position, &group);
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
  return open(state_->session, Random::mix(group.context ^ Random::mix(tag ^ 0x73756267)),
              std::move(members), position, &group);
}

// So that whoever calls first does not wait for code and pages to come: a call that counts nowhere.
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
  } catch (const Error&) {   // options may ask for what it cannot have; who calls will be told
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
void Communicator::leave(Leaving why) {
  end_profile(*this);
  state_->session->leave(why);
}
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
  std::string copies;   // the choice, were the ranks attached
  problem.single_copy = true;
  if (state_->group->one_node && choose(problem, now, wish).algorithm->uses(Access::single_copy))
    copies = str("; ", state_->group->shm->first().describe_copies());
  return str(describe(c),
             nodes() > 1 ? "; " + described_nodes(state_->nodes) : "",
             problem.canonical ? "; numbers=canonical: added in rank order, at once" : "",
             has_op(problem.collective) && state_->session->config().numbers == Numbers::fast
                 ? "; numbers=fast: bits may follow who is late" : "",
             copies, nodes() > 1 ? str("; between nodes ", describe(assumed())) : "",
             state_->arrivals.evidence(call), state_->evidence(call, problem, c));
}

const Assumed& Communicator::assumed() const { return state_->assumed; }

Communicator join_transport(std::unique_ptr<Transport> transport, const WorldConfig& config,
                            bool together) {
  const int rank = transport->rank(), ranks = transport->ranks();
  const auto session = Session::make(std::move(transport), config);
  record_on_signal(config.record_signal, config.record_dir, session);
  std::vector<int> everybody(static_cast<std::size_t>(ranks));
  std::iota(everybody.begin(), everybody.end(), 0);
  if (asks_links(config))
    session->assume(machine_between_nodes(open(session, kProbing, everybody, rank), config));
  Communicator world = open(session, 1, std::move(everybody), rank);
  if (together) world.attach_together(config.start_timeout_ms);
  begin_profile(world, config);
  return world;
}

}  // namespace paceline
