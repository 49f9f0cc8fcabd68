#include "verify/sweep.hpp"

#include <algorithm>

namespace paceline {
namespace {

// The first, the second and the last rank, each once.
std::vector<int> roots_of(Collective collective, int ranks) {
  if (!has_root(collective)) return {0};
  std::vector<int> roots{0};
  for (int root : {1, ranks - 1})
    if (root < ranks && std::find(roots.begin(), roots.end(), root) == roots.end())
      roots.push_back(root);
  return roots;
}

// A broadcast has one buffer anyway, a barrier none.
bool knows_in_place(Collective collective) {
  return collective != Collective::broadcast && collective != Collective::barrier;
}

void add_variants(const Shape& base, std::vector<Shape>& shapes) {
  const int places = knows_in_place(base.collective) ? 2 : 1;
  const int orders = has_op(base.collective) ? 2 : 1;
  for (int variant = 0; variant < places * orders; ++variant)
    for (bool fused : {false, true})
      for (int segments : {1, 3}) {
        Shape shape = base;
        shape.in_place = variant % places == 1;
        shape.ordered = variant / places == 1;
        shape.fused = fused;
        shape.segments = segments;
        shape.window = segments > 1 ? 2 : 1;
        shapes.push_back(shape);
      }
}

}  // namespace

std::vector<Shape> sweep(Collective collective, int max_ranks) {
  std::vector<Shape> shapes;
  for (int ranks = 1; ranks <= max_ranks; ++ranks)
    for (int root : roots_of(collective, ranks)) {
      Shape shape;
      shape.collective = collective;
      shape.ranks = ranks;
      shape.root = root;
      add_variants(shape, shapes);
    }
  return shapes;
}

}  // namespace paceline
