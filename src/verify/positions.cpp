#include "verify/positions.hpp"

#include <algorithm>

#include "base/str.hpp"
#include "ir/bind.hpp"
#include "ir/compose.hpp"

namespace paceline {
namespace {

bool do_the_same(const Schedule& a, const Schedule& b) {
  if (a.steps.size() != b.steps.size() || a.segments != b.segments) return false;
  for (std::size_t i = 0; i < a.steps.size(); ++i) {
    const Step &x = a.steps[i], &y = b.steps[i];
    const bool talks = x.kind != Kind::signal && (x.peer != y.peer || x.seq != y.seq);
    if (x.kind != y.kind || x.segments != y.segments || talks) return false;
  }
  return true;
}

// Whether ranks that stand like this stay on their nodes, and keep the place that is kept.
bool can_come(const Algorithm& algorithm, const Problem& problem, const std::vector<int>& order) {
  if (!algorithm.by_nodes) return !algorithm.root_first || order[0] == problem.root;
  const auto node_of = [&](int rank) { return problem.nodes[std::size_t(rank)]; };
  for (int position = 0; position < problem.ranks; ++position) {
    const auto begin = problem.nodes.begin();
    const bool is_first = std::find(begin, begin + position, node_of(position)) == begin + position;
    const int rank = order[std::size_t(position)];
    if (node_of(rank) != node_of(position)) return false;
    if (algorithm.root_first && is_first && rank != position) return false;
  }
  return true;
}

Schedule at(const Algorithm& algorithm, Shape shape, int position, int root) {
  shape.root = root;
  return build(algorithm, problem_of(algorithm, shape, position), shape.cut.knobs);
}

}  // namespace

Verdict check_positions(const Algorithm& algorithm, const Shape& shape) {
  if (algorithm.root_first || !has_root(algorithm.collective)) return {};
  for (int position = 0; position < shape.ranks; ++position) {
    const int one = (position + 1) % shape.ranks;   // what the engine takes
    for (int root = 0; root < shape.ranks; ++root)
      if (root != position &&
          !do_the_same(at(algorithm, shape, position, one), at(algorithm, shape, position, root)))
        return {str("positions: what position ", position, " does depends on whether the root is ",
                    one, " or ", root)};
  }
  return {};
}

std::vector<std::vector<int>> all_orders(const Algorithm& algorithm, const Shape& shape) {
  std::vector<std::vector<int>> orders;
  std::vector<int> order = all_ranks(shape.ranks);
  const Problem problem = problem_of(algorithm, shape, 0);
  do {
    if (can_come(algorithm, problem, order)) orders.push_back(order);
  } while (std::next_permutation(order.begin(), order.end()));
  return orders;
}

}  // namespace paceline
