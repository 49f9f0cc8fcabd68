#include "ir/compose.hpp"

#include <algorithm>
#include <numeric>

#include "base/error.hpp"

namespace paceline {

std::vector<int> all_ranks(int ranks) {
  std::vector<int> all(static_cast<std::size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

Region region_of(const Segment& segment) { return {segment.space, segment.first, segment.blocks}; }

Region region_in(const Segment& slot, const Region& shape) {
  return {Space::scratch, shape.first, shape.blocks, slot};
}

namespace {

// Positions of the phase, the latest one last.
std::vector<int> late_in(const Phase& phase, const Problem& whole) {
  if (!phase.late.empty()) return phase.late;
  std::vector<int> late;
  for (int rank : whole.late)
    if (const auto at = std::find(phase.members.begin(), phase.members.end(), rank);
        at != phase.members.end())
      late.push_back(static_cast<int>(at - phase.members.begin()));
  return late;
}

}  // namespace

void compose(Builder& builder, int rank, const std::vector<Phase>& phases) {
  for (const Phase& phase : phases) {
    if (phase.whole) builder.whole(phase.reads_scratch);
    const auto me = std::find(phase.members.begin(), phase.members.end(), rank);
    if (me == phase.members.end()) continue;
    Builder::Part part;
    part.problem.collective = phase.algorithm->collective;
    part.problem.ranks = static_cast<int>(phase.members.size());
    part.problem.rank = static_cast<int>(me - phase.members.begin());
    part.problem.root = phase.root;
    part.problem.commutative = builder.problem().commutative;
    part.problem.canonical = builder.problem().canonical && has_op(part.problem.collective);
    part.problem.uneven = builder.problem().uneven;
    part.problem.symmetric = builder.problem().symmetric;
    part.problem.single_copy = builder.problem().single_copy;
    part.problem.fast = builder.problem().fast;
    if (phase.algorithm->expects_late()) part.problem.late = late_in(phase, builder.problem());
    part.problem.in_place = phase.input.space == phase.output.space;
    if (const auto reason = why_not(*phase.algorithm, part.problem))
      fail(Fault::refusal, "phase ", name_of(part.problem.collective), "/", phase.algorithm->name,
           ": ", reason->why, ". Compose with another algorithm.");
    part.cuts = phase.algorithm->cuts(part.problem, phase.knobs);
    part.members = phase.members;
    part.input = phase.input;
    part.output = phase.output;
    part.completes = phase.completes;
    part.leaves_out = phase.leaves_out;
    Builder sub = builder.phase(part);
    phase.algorithm->build(part.problem, phase.knobs, sub);
  }
}

}  // namespace paceline
