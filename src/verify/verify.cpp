#include "verify/verify.hpp"

#include <unordered_set>

#include "base/random.hpp"
#include "base/str.hpp"
#include "ir/fuse.hpp"
#include "ir/in_step.hpp"
#include "ir/pipeline.hpp"
#include "ir/straight.hpp"
#include "verify/form.hpp"
#include "verify/hazards.hpp"
#include "verify/run.hpp"
#include "verify/straight.hpp"

namespace paceline {
namespace {

// Does whatever can be done, with every send waiting for its receive. Nothing that can be done is
// ever undone by something else, so one order decides for all of them whether the world ends.
Verdict run_once(const World& world, const Partners& partners) {
  Run run(world, partners);
  while (true) {
    const std::vector<Action> actions = run.actions(false);
    if (actions.empty()) break;
    for (const Action& action : actions) {
      run.take(action);
      if (!run.fault().empty()) return {run.fault()};
    }
  }
  return {run.ended() ? run.judge() : run.stuck()};
}

void explore_from(const Run& run, std::unordered_set<std::string>& seen, std::size_t limit,
                  Exploration& out) {
  if (!out.verdict || seen.size() >= limit || !seen.insert(run.fingerprint()).second) return;
  const std::vector<Action> actions = run.actions(true);
  if (actions.empty()) {
    out.verdict.fault = run.ended() ? run.judge() : run.stuck();
    return;
  }
  for (const Action& action : actions) {
    Run next = run;
    next.take(action);
    if (!next.fault().empty()) {
      out.verdict.fault = next.fault();
      return;
    }
    explore_from(next, seen, limit, out);
  }
}

}  // namespace

Verdict verify(const World& world) {
  Partners partners;
  if (Verdict bad = check_form(world); !bad) return bad;
  if (Verdict bad = match(world, partners); !bad) return bad;
  if (Verdict bad = check_straight(world); !bad) return bad;
  if (Verdict bad = check_hazards(world, partners); !bad) return bad;
  return run_once(world, partners);
}

Verdict shake(const World& world, std::uint64_t seed) {
  Partners partners;
  if (Verdict bad = match(world, partners); !bad) return bad;
  Random random(seed);
  Run run(world, partners);
  while (true) {
    const std::vector<Action> actions = run.actions(true);
    if (actions.empty()) break;
    run.take(actions[random.below(actions.size())]);
    if (!run.fault().empty()) return {str(run.fault(), " (seed ", seed, ")")};
  }
  const std::string bad = run.ended() ? run.judge() : run.stuck();
  return {bad.empty() ? bad : str(bad, " (seed ", seed, ")")};
}

Exploration explore(const World& world, std::size_t states) {
  Exploration out;
  Partners partners;
  out.verdict = match(world, partners);
  if (!out.verdict) return out;
  std::unordered_set<std::string> seen;
  explore_from(Run(world, partners), seen, states, out);
  out.states = seen.size();
  out.complete = seen.size() < states;
  return out;
}

std::string describe(const Algorithm& algorithm, const Shape& shape) {
  return str(
      name_of(algorithm.collective), " --algorithm ", algorithm.name, " --ranks ", shape.ranks,
      has_root(algorithm.collective) ? str(" --root ", shape.root) : "",
      shape.in_place ? " --in-place" : "", shape.fused ? " --fused" : "",
      shape.in_step ? " --in-step" : "",
      shape.segments > 1 ? str(" --segments ", shape.segments, " --window ", shape.window) : "",
      shape.whole_tail ? " --whole-tail" : "",
      shape.ordered ? " --ordered" : "", shape.canonical ? " --canonical" : "",
      shape.uneven ? " --uneven" : "",
      shape.group ? str(" --group ", shape.group) : "", shape.scattered ? " --scattered" : "",
      shape.knobs.radix ? str(" --radix ", shape.knobs.radix) : "",
      shape.knobs.blocks ? str(" --blocks ", shape.knobs.blocks) : "");
}

Problem problem_of(const Algorithm& algorithm, const Shape& shape, int rank) {
  Problem problem;
  problem.collective = algorithm.collective;
  problem.ranks = shape.ranks;
  problem.rank = rank;
  problem.root = shape.root;
  const bool only_root = algorithm.collective == Collective::reduce ||
                         algorithm.collective == Collective::gather ||
                         algorithm.collective == Collective::scatter;
  problem.in_place = shape.in_place && (!only_root || rank == shape.root);
  problem.commutative = !shape.ordered;
  problem.canonical = shape.canonical;
  problem.uneven = shape.uneven;
  problem.shared = algorithm.shared;
  problem.near = algorithm.is_straight();
  problem.attached = algorithm.attached;
  for (int r = 0; shape.group > 0 && r < shape.ranks; ++r)
    problem.groups.push_back(shape.scattered ? r % (shape.ranks / shape.group) : r / shape.group);
  return problem;
}

World make_world(const Algorithm& algorithm, const Shape& shape) {
  World world;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    Schedule schedule = build(algorithm, problem_of(algorithm, shape, rank), shape.knobs);
    if (shape.fused) schedule = fuse(schedule);
    if (shape.in_step) schedule = in_step(schedule);
    schedule = pipeline(schedule, shape.segments, shape.window,
                        shape.whole_tail ? Tail::whole : Tail::cut);
    world.push_back(schedule.problem.near ? in_order(schedule) : std::move(schedule));
  }
  return world;
}

}  // namespace paceline
