#include "ir/bind.hpp"

#include <algorithm>

#include "ir/compose.hpp"

namespace paceline {
namespace {

bool has_peer(Kind kind) {
  return kind == Kind::send || kind == Kind::recv || kind == Kind::recv_reduce ||
         kind == Kind::signal || kind == Kind::wait;
}

}  // namespace

Order::Order(const Problem& problem)
    : rank_at_(all_ranks(problem.ranks)), position_of_(rank_at_) {
  const std::vector<int>& group = problem.groups;
  if (group.empty()) return;
  std::stable_sort(rank_at_.begin(), rank_at_.end(), [&](int a, int b) {
    return group[std::size_t(a)] < group[std::size_t(b)];
  });
  for (int position = 0; position < problem.ranks; ++position)
    position_of_[std::size_t(rank_at_[std::size_t(position)])] = position;
}

bool is_bound(const Algorithm& algorithm, const Problem& problem) {
  if (algorithm.grouped || algorithm.is_straight() || units_of(problem) > 1) return false;
  return !std::is_sorted(problem.groups.begin(), problem.groups.end()) &&
         ((problem.commutative && !problem.canonical) || !has_op(problem.collective));
}

Problem at_position(const Problem& problem, const Order& order) {
  Problem at = problem;
  at.rank = order.position_of(problem.rank);
  at.root = order.position_of(problem.root);
  std::sort(at.groups.begin(), at.groups.end());
  return at;
}

Schedule bind(Schedule schedule, const Problem& problem, const Order& order) {
  for (Step& step : schedule.steps)
    if (has_peer(step.kind)) step.peer = order.rank_at(step.peer);
  schedule.problem = problem;
  return schedule;
}

}  // namespace paceline
