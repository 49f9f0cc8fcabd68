#include "verify/verify.hpp"

#include <unordered_set>

#include "base/random.hpp"
#include "base/str.hpp"
#include "ir/bind.hpp"
#include "ir/lower.hpp"
#include "verify/form.hpp"
#include "verify/hazards.hpp"
#include "verify/run.hpp"
#include "verify/staging.hpp"
#include "verify/load_store.hpp"

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

std::string listed(const std::vector<int>& numbers) {
  std::string out;
  for (int number : numbers) out += str(out.empty() ? "" : ",", number);
  return out;
}

// Builds a rank's schedule, for its position if positions are claimed.
Schedule claimed(const Algorithm& algorithm, const Problem& problem, const Shape& shape) {
  if (shape.order.empty()) return build(algorithm, problem, shape.cut.knobs);
  const Order order(shape.order);
  return bind(build(algorithm, at_position(problem, order), shape.cut.knobs), problem, order);
}

}  // namespace

Verdict verify(const World& world) {
  Partners partners;
  if (Verdict bad = check_form(world); !bad) return bad;
  if (Verdict bad = match(world, partners); !bad) return bad;
  if (Verdict bad = check_straight(world); !bad) return bad;
  if (Verdict bad = check_staging(world); !bad) return bad;
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

namespace {

std::string late_of(const Shape& shape) {
  std::string out;
  for (int rank : shape.late) out += str(out.empty() ? " --late " : ",", rank);
  return out;
}

}  // namespace

std::string describe(const Algorithm& algorithm, const Shape& shape) {
  const Cut& cut = shape.cut;
  return str(
      name_of(algorithm.collective), " --algorithm ", algorithm.name, " --ranks ", shape.ranks,
      has_root(algorithm.collective) ? str(" --root ", shape.root) : "",
      shape.in_place ? " --in-place" : "", shape.fused ? " --fused" : "",
      cut.in_step ? " --in-step" : "",
      cut.segments > 1 ? str(" --segments ", cut.segments, " --window ", cut.window) : "",
      cut.whole_tail ? " --whole-tail" : "",
      shape.ordered ? " --ordered" : "", shape.canonical ? " --canonical" : "",
      shape.uneven ? " --uneven" : "",
      shape.group ? str(" --group ", shape.group) : "", shape.scattered ? " --scattered" : "",
      shape.nodes.empty() ? "" : str(" --nodes ", listed(shape.nodes)),
      shape.no_staging ? " --no-staging" : "",
      cut.knobs.radix ? str(" --radix ", cut.knobs.radix) : "",
      cut.knobs.blocks ? str(" --blocks ", cut.knobs.blocks) : "",
      shape.order.empty() ? "" : " --order ", listed(shape.order),
      late_of(shape));
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
  problem.late = shape.late;
  problem.fast = !shape.canonical;   // a proof is of any numbers
  problem.symmetric = algorithm.uses(Access::symmetric);
  problem.one_node = algorithm.is_load_store();
  problem.single_copy = algorithm.uses(Access::single_copy);
  for (int r = 0; shape.group > 0 && r < shape.ranks; ++r)
    problem.nodes.push_back(shape.scattered ? r % (shape.ranks / shape.group) : r / shape.group);
  if (!shape.nodes.empty()) problem.nodes = shape.nodes;
  if (algorithm.by_nodes()) problem.nodes.resize(std::size_t(shape.ranks));   // else all share one
  problem.node_staging = algorithm.by_nodes() && !shape.no_staging;
  return problem;
}

World make_world(const Algorithm& algorithm, const Shape& shape) {
  World world;
  for (int rank = 0; rank < shape.ranks; ++rank)
    world.push_back(lower(algorithm, claimed(algorithm, problem_of(algorithm, shape, rank), shape),
                          shape.cut, shape.fused ? Reader::host : Reader::proof));
  return world;
}

}  // namespace paceline
