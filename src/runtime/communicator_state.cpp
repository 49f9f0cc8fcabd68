#include "runtime/communicator_state.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/str.hpp"
#include "runtime/device_call.hpp"
#include "runtime/fingerprint.hpp"
#include "runtime/late_prices.hpp"
#include "runtime/progress/clock.hpp"
#include "tune/late.hpp"

namespace paceline {
namespace {

std::string in_us(std::int64_t ns) { return str(double(ns / 10) / 100); }

}  // namespace

std::shared_ptr<CommunicatorState> open_communicator(const std::shared_ptr<Session>& session,
                                                     std::uint64_t context, std::vector<int> ranks,
                                                     int rank, const Group* made_of) {
  auto group = std::make_shared<Group>();
  if (made_of) group->timeout_ms = made_of->timeout_ms;
  group->context = context;
  group->ranks = std::move(ranks);
  group->rank = rank;
  return std::make_shared<CommunicatorState>(session, group);
}

Problem CommunicatorState::problem_of(const Call& call) const {
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

// Returns the call's own overrides, else those of the options.
Overrides CommunicatorState::wish_of(const Call& call) const {
  const WorldConfig& config = session->config();
  Overrides wish{call.algorithm, call.cut};
  if (call.collective == Collective::barrier) return wish;
  if (wish.algorithm.empty())
    wish.algorithm = config.algorithms[static_cast<std::size_t>(call.collective)];
  if (wish.cut.segments == 0 && wish.cut.segment_bytes == 0) {
    wish.cut.segments = config.cut.segments;
    wish.cut.segment_bytes = config.cut.segment_bytes;
  }
  if (wish.cut.window == 0) wish.cut.window = config.cut.window;
  return wish;
}

// True if the call has another form for late ranks. It tests one late rank: if that has no form,
// more late ranks have none.
bool CommunicatorState::has_notes(const Call& call, const Problem& problem,
                                    const Choice& choice) const {
  const Overrides wish = wish_of(call);
  const bool is_asked = !wish.algorithm.empty() || wish.cut != Cut{};
  if (!arrivals.learns() || !arrivals.wants(call) || is_asked) return false;
  Problem aware = problem;
  if (aware.late.empty()) aware.late = {0};
  return form_for_late(aware, inputs_of(call, aware), choice).has_value();
}

CallPrices CommunicatorState::prices_of(const Call& call) const {
  const Problem problem = problem_of(call);
  const ChoiceInputs now = inputs_of(call, problem);
  return prices_for_late(problem, now, choose(problem, now, wish_of(call)));
}

std::optional<Choice> CommunicatorState::by_arrival(const Call& call, const Problem& problem,
                                                      const Choice& usual) const {
  const Overrides wish = wish_of(call);
  const bool is_asked = !wish.algorithm.empty() || wish.cut != Cut{};
  if (!group->one_node || is_asked || call.uneven || leaves_out_sums || call.device.end ||
      !expected_by(session->config().arrival).learns_in_node)
    return {};
  return chosen_by_arrival(problem, inputs_of(call, problem), usual);
}

std::string CommunicatorState::evidence(const Call& call, const Problem& problem,
                                          const Choice& usual) {
  const auto other = by_arrival(call, problem, usual);
  if (!other) return {};
  const auto e = group->entry_books[0].evidence(prepare(call).fingerprint);
  if (!e) return "; arrivals in the node: no such call has been seen at this place";
  return str("; arrivals in the node, of ", e->calls, " calls: a rank came late in ", e->late,
             " of the last 32; then ", in_us(e->usual_ns), " us are left as usual, ",
             in_us(e->arrival_ns), " us by ", other->algorithm->name, "; taken: ",
             e->by_arrival ? other->algorithm->name : usual.algorithm->name);
}

Ready CommunicatorState::prepare(const Call& call, const std::vector<int>& late) {
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
  if (!p.shared) places.reset();   // the algorithm does not use shared memory
  ready.fingerprint =
      fingerprint_of(call, p.choice, places ? std::optional(places->name) : std::nullopt);
  if (places) ready.peers = std::move(places->peers);
  return ready;
}

CompiledSchedule CommunicatorState::compiled(const Choice& choice, const Problem& problem,
                                               const Layout& layout, const Call& call) const {
  CompiledSchedule bound = compile(choice, problem, layout, call, staging_limits());
  const bool in_nodes = choice.algorithm->by_nodes() && stages_in_nodes(problem);
  if (leaves_out_sums) leave_out_combining(bound, choice.algorithm->is_load_store() || in_nodes);
  return bound;
}

Prepared CommunicatorState::prepared_for(CallShape shape, const Call& call,
                                           const Problem& problem, const Layout& layout) const {
  Problem alike = problem;  // in_place may differ between ranks, so the choice must not use it
  alike.in_place = problem.in_place && problem.symmetric;   // unless peers access the buffers
  const Choice choice = choose(alike, inputs_of(call, problem), wish_of(call));
  Prepared prepared;
  prepared.shape = std::move(shape);
  prepared.shared = choice.algorithm->uses(Access::symmetric);
  prepared.load_store = choice.algorithm->is_load_store();
  prepared.has_notes = has_notes(call, alike, choice);
  CompiledSchedule bound = compiled(choice, problem, layout, call);
  if (prepared.has_notes) add_notes(bound);
  const auto other = by_arrival(call, alike, choice);
  if (bound.load_store) prepared.staging_bytes = bound.scratch_bytes;
  else if (bound.mixed) prepared.staging_bytes = bound.staging_bytes;
  if (other) {
    CompiledSchedule arriving = compiled(*other, problem, layout, call);
    prepared.staging_bytes = std::max(prepared.staging_bytes, arriving.scratch_bytes);
    bound.by_arrival = std::make_shared<const CompiledSchedule>(std::move(arriving));
  }
  prepared.bound = std::make_shared<CompiledSchedule>(std::move(bound));
  prepared.choice = hash_of(choice) ^ digest_of(group->ranks) ^
                    (prepared.shared && problem.in_place ? 1 : 0) ^
                    digest_of(problem.late) << 1 ^ (prepared.has_notes ? 4 : 0) ^
                    (other ? hash_of(*other) : 0);
  return prepared;
}

std::shared_ptr<Prepared> CommunicatorState::prepare(const Call& call, const Problem& problem,
                                                       const Layout& layout) {
  CallShape shape{call, problem.in_place, problem.symmetric, problem.late};
  shape.call.input = shape.call.output = nullptr;
  const std::lock_guard lock(mutex);
  if (auto known = book.find(shape)) return known;
  auto prepared =
      std::make_shared<Prepared>(prepared_for(std::move(shape), call, problem, layout));
  book.add(prepared);
  return prepared;
}

std::shared_ptr<ActiveOp> CommunicatorState::free_op(Prepared& prepared) {
  const std::lock_guard lock(mutex);
  for (const auto& active : prepared.active_ops)
    if (active.use_count() == 1 && !active->operation->under_way()) return active;
  if (prepared.bound->load_store || prepared.bound->mixed)
    session->shm().open_staging(*group, prepared.staging_bytes);
  auto active = std::make_shared<ActiveOp>();
  active->session = session;
  active->group = group;
  active->operation = operation_of(
      prepared, Channel{group->context, &group->ranks, group->shm.get(), now_s,
                        group->entry_books.data()});
  prepared.active_ops.push_back(active);
  return active;
}

// Returns a copy. Takes the lock, since other threads may add operations to the original.
std::shared_ptr<Prepared> CommunicatorState::without_active_ops(const Prepared& prepared) {
  const std::lock_guard lock(mutex);
  auto copy = std::make_shared<Prepared>(prepared);
  copy->active_ops.clear();
  return copy;
}

}  // namespace paceline
