#include "runtime/compile.hpp"

#include <algorithm>
#include <deque>

#include "base/error.hpp"
#include "base/str.hpp"
#include "engine/enqueued.hpp"
#include "engine/shm/shm_channel.hpp"
#include "ir/compose.hpp"
#include "ir/lower.hpp"
#include "ir/load_store.hpp"

namespace paceline {
namespace {

// Fewer pieces than this cannot give too many signals: no algorithm gives 64 for a piece, besides
// those that it gives once. So only long plans pay for a look at the schedules of all ranks.
constexpr std::size_t kFewPieces = 1024;

// Before anything is sent, and equal on all ranks: one that alone has few signals refuses as well.
void check_signals(const Choice& choice, Problem problem) {
  const auto segments = static_cast<std::size_t>(choice.cut.segments);
  const int blocks = std::max(choice.cut.knobs.blocks, 1);
  if (segments * static_cast<std::size_t>(blocks) < kFewPieces) return;
  problem.in_place = problem.in_place && problem.symmetric;   // else each rank's own affair
  std::size_t most = 0;
  for (problem.rank = 0; problem.rank < problem.ranks; ++problem.rank)
    most = std::max(most, signals_in(build(*choice.algorithm, problem, choice.cut.knobs)));
  if (most * segments <= kMostSignals) return;
  fail(Fault::refusal, name_of(problem.collective), "/", choice.algorithm->name, ": ", segments,
       " segments and ", blocks, " blocks give ", most * segments,
       " signals in a call, and ranks that share memory count ", kMostSignals, ". Ask for at most ",
       kMostSignals / most, " segments, or for fewer blocks.");
}

// Before anything is sent, and equal on all ranks: one that is alone on its node needs no room, and
// looks at what others need.
void check_staging(const Choice& choice, const CompiledSchedule& own, const Call& call,
                   std::size_t most) {
  Problem problem = own.schedule->problem;
  const std::string where = str(name_of(problem.collective), "/", choice.algorithm->name, ": ");
  const Cut& cut = choice.cut;
  const int lanes = own.schedule->lanes;
  std::size_t wanted = own.staging_bytes;
  std::shared_ptr<const Schedule> schedule = own.schedule;
  if (!own.mixed) {
    const auto has_mates = [&](int node) {
      return std::count(problem.nodes.begin(), problem.nodes.end(), node) > 1;
    };
    const auto found = std::find_if(problem.nodes.begin(), problem.nodes.end(), has_mates);
    if (found == problem.nodes.end()) return;   // every rank is alone on its node
    problem.rank = static_cast<int>(found - problem.nodes.begin());
    schedule = std::make_shared<Schedule>(lower(*choice.algorithm, problem, choice.cut));
    wanted = resolve(schedule, even_layout(problem, call.count), call.type, call.op).staging_bytes;
  }
  int signals = 0;
  for (const Step& step : schedule->steps)
    if (step.kind == Kind::signal) signals = std::max(signals, step.seq + 1);
  if (signals == 0) return;   // messages, inside nodes as well
  if (lanes > ShmChannel::kLanes)
    fail(Fault::refusal, where, cut.segments, " segments, ", cut.window, " at a time, and ",
         "ranks of a node signal for at most ", ShmChannel::kLanes, ". Ask for a smaller window.");
  if (wanted > most)
    fail(Fault::refusal, where, "needs ", human_bytes(double(wanted)), " of every rank's staging ",
         "buffer, which has ", human_bytes(double(most)), ". Ask for more segments, for a smaller ",
         "window, for another algorithm, or raise PACELINE_STAGE_BYTES.");
  if (std::size_t(signals) > kMostSignals)
    fail(Fault::refusal, where, cut.segments, " segments, ", lanes, " at a time, give ", signals,
         " signals, and ranks that share memory count ", kMostSignals, ". Ask for fewer segments.");
}

// Where ranks claim positions: what each position does. Which of the others is the root's makes no
// difference to it (verify/positions.hpp).
void add_positions(const Choice& choice, const Problem& problem, const Layout& layout,
                   const std::vector<Layout>& peers, CompiledSchedule& bound, Op op) {
  const bool is_root = problem.rank == problem.root;
  for (int position = 0; position < problem.ranks; ++position) {
    Problem at = problem;
    at.rank = position;
    at.root = is_root ? position : (position + 1) % problem.ranks;
    CompiledSchedule one =
        resolve(std::make_shared<Schedule>(lower(*choice.algorithm, at, choice.cut)), layout,
                bound.type, op, peers);
    one.load_store = true;
    bound.positions.push_back(std::make_shared<CompiledSchedule>(std::move(one)));
  }
}

// In which order a device does its steps; all ranks' schedules tell. Which of them work in place is
// each rank's own affair: the order is of both ways.
std::vector<std::uint32_t> device_order(const Choice& choice, const Problem& own) {
  std::deque<Schedule> schedules;   // which stay where they are
  std::vector<RankSchedule> world;
  std::size_t mine = 0;
  for (Problem problem = own; const int rank : all_ranks(own.ranks))
    for (const bool in_place : {false, true}) {
      problem.rank = rank;
      problem.in_place = in_place;
      const bool is_own = rank == own.rank && in_place == own.in_place;
      if (!is_own && choice.algorithm->rejects(problem)) continue;
      if (is_own) mine = world.size();
      schedules.push_back(lower(*choice.algorithm, problem, choice.cut, Reader::device));
      world.push_back({rank, &schedules.back()});
    }
  return steps_in_order(world, mine);
}

}  // namespace

std::string describe(const Choice& c) {
  const Cut& cut = c.cut;
  return str(c.algorithm->name, cut.knobs.radix > 0 ? str(", radix ", cut.knobs.radix) : "",
             cut.knobs.blocks > 0 ? str(", ", cut.knobs.blocks, " blocks") : "",
             cut.segments > 1 ? str(", ", cut.segments, " segments, ", cut.window, " at a time")
                              : "",
             ": ", c.why);
}

CompiledSchedule compile(const Choice& choice, const Problem& problem, const Layout& layout,
               const Call& call, const StagingLimits& staging) {
  const bool load_store = choice.algorithm->is_load_store(), by_stages = load_store &&
      staging.one_node;
  if (by_stages) check_signals(choice, problem);
  auto schedule = std::make_shared<Schedule>(
      lower(*choice.algorithm, problem, choice.cut,
            call.device.end ? Reader::device : Reader::host));
  std::vector<Layout> peers;
  for (Problem peer = problem; load_store && peers.size() < std::size_t(problem.ranks);) {
    peer.rank = static_cast<int>(peers.size());
    peers.push_back(even_layout(peer, call.count));
  }
  CompiledSchedule bound = resolve(std::move(schedule), layout, call.type, call.op, peers);
  bound.load_store = by_stages;
  if (call.device.end) bound.order = device_order(choice, problem);
  if (choice.algorithm->claims() && problem.ranks > 1 && by_stages)
    add_positions(choice, problem, layout, peers, bound, call.op);
  if (choice.algorithm->by_nodes() && stages_in_nodes(problem))
    check_staging(choice, bound, call, staging.bytes);
  if (by_stages && bound.scratch_bytes > staging.bytes)
    fail(Fault::refusal, name_of(call.collective), "/", choice.algorithm->name, ": needs ",
         human_bytes(double(bound.scratch_bytes)), " of every rank's stage, which has ",
         human_bytes(double(staging.bytes)), ". Ask for more blocks, for another algorithm, or ",
         "raise PACELINE_STAGE_BYTES.");
  return bound;
}

}  // namespace paceline
