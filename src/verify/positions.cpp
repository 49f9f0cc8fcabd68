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

Schedule at(const Algorithm& algorithm, Shape shape, int position, int root) {
  shape.root = root;
  return build(algorithm, problem_of(algorithm, shape, position), shape.cut.knobs);
}

}  // namespace

Verdict check_positions(const Algorithm& algorithm, const Shape& shape) {
  if (!has_root(algorithm.collective)) return {};
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

std::vector<std::vector<int>> all_orders(int ranks) {
  std::vector<std::vector<int>> orders;
  std::vector<int> order = all_ranks(ranks);
  do orders.push_back(order);
  while (std::next_permutation(order.begin(), order.end()));
  return orders;
}

}  // namespace paceline
