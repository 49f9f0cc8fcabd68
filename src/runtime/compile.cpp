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
// those that it gives once. So only long plans pay for a check of all ranks' schedules.
constexpr std::size_t kFewPieces = 1024;

// Refuses on all ranks alike, before anything is sent: a rank with few signals refuses as well.
void check_signals(const Choice& choice, Problem problem) {
  const auto segments = static_cast<std::size_t>(choice.cut.segments);
  const int blocks = std::max(choice.cut.knobs.blocks, 1);
  if (segments * static_cast<std::size_t>(blocks) < kFewPieces) return;
  problem.in_place = problem.in_place && problem.symmetric;   // else it may differ between ranks
  std::size_t most = 0;
  for (problem.rank = 0; problem.rank < problem.ranks; ++problem.rank)
    most = std::max(most, signals_in(build(*choice.algorithm, problem, choice.cut.knobs)));
  if (most * segments <= kMostSignals) return;
  fail(Fault::refusal, name_of(problem.collective), "/", choice.algorithm->name, ": ", segments,
       " segments and ", blocks, " blocks give ", most * segments,
       " signals in a call; ranks that share memory can count ", kMostSignals, ". Ask for at most ",
       kMostSignals / most, " segments, or for fewer blocks.");
}

// Refuses on all ranks alike, before anything is sent. A rank that is alone on its node needs no
// room itself, and checks what others need.
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
  if (signals == 0) return;   // the schedule uses messages inside nodes as well
  if (lanes > ShmChannel::kLanes)
    fail(Fault::refusal, where, cut.segments, " segments, ", cut.window, " at a time, and ",
         "ranks of a node signal for at most ", ShmChannel::kLanes, ". Ask for a smaller window.");
  if (wanted > most)
    fail(Fault::refusal, where, "needs ", human_bytes(double(wanted)), " of every rank's staging ",
         "buffer, which has ", human_bytes(double(most)), ". Ask for more segments, for a smaller ",
         "window, for another algorithm, or raise PACELINE_STAGE_BYTES.");
  if (std::size_t(signals) > kMostSignals)
    fail(Fault::refusal, where, cut.segments, " segments, ", lanes, " at a time, give ", signals,
         " signals; ranks that share memory can count ", kMostSignals, ". Ask for fewer segments.");
}

// Adds the schedule of every position that ranks may claim. A position's schedule does not depend
// on the root's position, unless it is its own (verify/positions.hpp).
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

// Returns the order of a device's steps, from the schedules of all ranks. Each rank may work in
// place or not, so the order covers both.
std::vector<std::uint32_t> device_order(const Choice& choice, const Problem& own) {
  std::deque<Schedule> schedules;   // a deque keeps their addresses
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
             cut.knobs.blocks > 0 ? str(", ", cut.knobs.blocks,
                                        cut.knobs.blocks == 1 ? " block" : " blocks") : "",
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
