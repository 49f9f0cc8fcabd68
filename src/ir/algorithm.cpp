#include "ir/algorithm.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/str.hpp"
#include "ir/bind.hpp"

namespace paceline {
namespace {

constexpr std::size_t kGrain = 64;   // elements: cache lines, of every type

Schedule recorded(const Algorithm& algorithm, const Problem& problem, const Knobs& knobs) {
  Builder builder(problem, algorithm.cuts(problem, knobs));
  algorithm.build(problem, knobs, builder);
  Schedule schedule = std::move(builder).take(algorithm.name);
  schedule.single_copy = algorithm.access == Access::single_copy;
  if (algorithm.is_load_store()) schedule.grain = kGrain;   // no two ranks work on one line
  return schedule;
}

// Returns why sums in order of arrival are refused if bits must not depend on that order.
Reason follows_arrival(const Problem& problem) {
  return {str("it adds the ranks' values in the order in which they come, so that bits may differ "
              "from run to run, and numbers is ", problem.canonical ? "canonical" : "stable",
              "; PACELINE_NUMBERS=fast would allow that"),
          problem.collective == Collective::allreduce ? "two_shot" : "staged"};
}

Reason out_of_reach(Access access, const Problem& problem) {
  if (access == Access::symmetric)
    return {"the ranks do not reach each other's buffers; allocate them with paceline.empty on "
            "ranks of one node, in equal pieces", ""};
  if (access == Access::single_copy)
    return {"the system does not copy between the memory of these ranks, as paceline doctor "
            "explains; they must be on one node", ""};
  if (problem.one_node) return {"not all ranks know where the pieces lie; it needs equal ones", ""};
  return {"the ranks do not reach each other's scratch; it needs ranks of one node that share "
          "memory", ""};
}

}  // namespace

std::optional<Reason> why_not(const Algorithm& algorithm, const Problem& problem) {
  if (!problem.reaches(algorithm.access)) return out_of_reach(algorithm.access, problem);
  if (algorithm.by_nodes() && problem.nodes.empty())
    return Reason{"it needs several nodes, at least one of them with several ranks", ""};
  if (algorithm.claims() && problem.ranks > kMostClaims)
    return Reason{str("positions can be claimed by at most ", kMostClaims, " ranks of a node"), ""};
  if (algorithm.claims() && !problem.commutative)
    return Reason{"it adds the ranks' values in the order in which they come, and the op is not "
                  "commutative", ""};
  if (algorithm.claims() && !problem.fast) return follows_arrival(problem);
  if (problem.canonical && has_op(problem.collective) && !algorithm.can_be_canonical())
    return Reason{"numbers is canonical: all ranks' values are to be added at once and in rank "
                  "order, and it adds them otherwise; PACELINE_NUMBERS=stable would allow that",
                  "direct"};
  if (algorithm.bits_follow_late() && !problem.late.empty() && !problem.fast)
    return Reason{"it adds late ranks last, so that bits depend on the prediction; "
                  "PACELINE_NUMBERS=fast would allow that", "tail_direct"};
  return algorithm.rejects(problem);
}

void check_serves(const Algorithm& algorithm, const Problem& problem) {
  if (const auto reason = why_not(algorithm, problem))
    fail(Fault::refusal, name_of(problem.collective), "/", algorithm.name, ": ", reason->why,
         ". Use ", reason->instead.empty() ? "another algorithm" : "algorithm=" + reason->instead,
         ", or auto.");
}

Schedule build(const Algorithm& algorithm, const Problem& problem, const Knobs& knobs) {
  if (!problem.late.empty() && !algorithm.expects_late()) {
    Problem unaware = problem;
    unaware.late.clear();
    return build(algorithm, unaware, knobs);
  }
  check_late(problem);
  check_serves(algorithm, problem);
  if (!is_bound(algorithm, problem)) return recorded(algorithm, problem, knobs);
  const Order order(problem);
  return bind(recorded(algorithm, at_position(problem, order), knobs), problem, order);
}

}  // namespace paceline
