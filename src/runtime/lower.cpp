#include "runtime/lower.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/str.hpp"
#include "ir/fuse.hpp"
#include "ir/in_step.hpp"
#include "ir/pipeline.hpp"
#include "ir/straight.hpp"

namespace paceline {
namespace {

// Fewer pieces than this cannot give too many signals: no algorithm gives 64 for a piece, besides
// those that it gives once. So only long plans pay for a look at the schedules of all ranks.
constexpr std::size_t kFewPieces = 1024;

// Before anything is sent, and equal on all ranks: one that alone has few signals refuses as well.
void check_signals(const Choice& choice, Problem problem) {
  const auto segments = static_cast<std::size_t>(choice.segments);
  if (segments * static_cast<std::size_t>(std::max(choice.knobs.blocks, 1)) < kFewPieces) return;
  problem.in_place = problem.in_place && problem.shared;   // else each rank's own affair
  std::size_t most = 0;
  for (problem.rank = 0; problem.rank < problem.ranks; ++problem.rank)
    most = std::max(most, signals_in(build(*choice.algorithm, problem, choice.knobs)));
  if (most * segments <= kMostSignals) return;
  fail(Fault::refusal, name_of(problem.collective), "/", choice.algorithm->name, ": ", segments,
       " segments and ", std::max(choice.knobs.blocks, 1), " blocks give ", most * segments,
       " signals in a call, and ranks that share memory count ", kMostSignals, ". Ask for at most ",
       kMostSignals / most, " segments, or for fewer blocks.");
}

}  // namespace

Bound lower(const Choice& choice, const Problem& problem, const Layout& layout, const Call& call,
            const std::size_t* stage_bytes) {
  const bool straight = choice.algorithm->is_straight(), by_stages = straight && stage_bytes;
  if (by_stages) check_signals(choice, problem);
  Schedule one = fuse(build(*choice.algorithm, problem, choice.knobs));
  if (choice.in_step) one = in_step(one);
  auto schedule = std::make_shared<Schedule>(pipeline(
      std::move(one), choice.segments, choice.window, choice.whole_tail ? Tail::whole : Tail::cut));
  if (by_stages && schedule->pipeline > 1) *schedule = in_order(std::move(*schedule));
  std::vector<Layout> peers;
  for (Problem peer = problem; straight && peers.size() < std::size_t(problem.ranks);) {
    peer.rank = static_cast<int>(peers.size());
    peers.push_back(even_layout(peer, call.count));
  }
  Bound bound = resolve(std::move(schedule), layout, call.type, call.op, peers);
  bound.straight = by_stages;
  if (!call.combines) leave_out_combining(bound, straight);
  if (by_stages && bound.scratch_bytes > *stage_bytes)
    fail(Fault::refusal, name_of(call.collective), "/", choice.algorithm->name, ": needs ",
         human_bytes(double(bound.scratch_bytes)), " of every rank's stage, which has ",
         human_bytes(double(*stage_bytes)), ". Ask for more blocks, for another algorithm, or ",
         "raise PACELINE_STAGE_BYTES.");
  return bound;
}

}  // namespace paceline
