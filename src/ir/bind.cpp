#include "ir/bind.hpp"

#include <algorithm>
#include <utility>

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
  const std::vector<int>& nodes = problem.nodes;
  if (nodes.empty()) return;
  std::stable_sort(rank_at_.begin(), rank_at_.end(), [&](int a, int b) {
    return nodes[std::size_t(a)] < nodes[std::size_t(b)];
  });
  for (int position = 0; position < problem.ranks; ++position)
    position_of_[std::size_t(rank_at_[std::size_t(position)])] = position;
}

Order::Order(std::vector<int> rank_at) : rank_at_(std::move(rank_at)), position_of_(rank_at_) {
  for (std::size_t position = 0; position < rank_at_.size(); ++position)
    position_of_[static_cast<std::size_t>(rank_at_[position])] = static_cast<int>(position);
}

std::vector<int> claimed_order(const std::vector<double>& arrivals) {
  std::vector<int> ranks = all_ranks(static_cast<int>(arrivals.size()));
  std::stable_sort(ranks.begin(), ranks.end(), [&](int a, int b) {
    return arrivals[static_cast<std::size_t>(a)] < arrivals[static_cast<std::size_t>(b)];
  });
  return ranks;
}

bool is_bound(const Algorithm& algorithm, const Problem& problem) {
  if (algorithm.access != Access::messages || units_of(problem) > 1) return false;
  return !std::is_sorted(problem.nodes.begin(), problem.nodes.end()) &&
         ((problem.commutative && !problem.canonical) || !has_op(problem.collective));
}

Problem at_position(const Problem& problem, const Order& order) {
  Problem at = problem;
  at.rank = order.position_of(problem.rank);
  at.root = order.position_of(problem.root);
  for (std::size_t i = 0; i < at.nodes.size(); ++i)
    at.nodes[i] = problem.nodes[std::size_t(order.rank_at(static_cast<int>(i)))];
  for (int& rank : at.late) rank = order.position_of(rank);
  return at;
}

Schedule bind(Schedule schedule, const Problem& problem, const Order& order) {
  for (Step& step : schedule.steps)
    if (has_peer(step.kind)) step.peer = order.rank_at(step.peer);
  for (Segment& segment : schedule.segments)
    if (segment.owner != kOwn) segment.owner = order.rank_at(segment.owner);
  schedule.problem = problem;
  return schedule;
}

}  // namespace paceline
