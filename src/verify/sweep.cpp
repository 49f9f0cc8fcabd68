#include "verify/sweep.hpp"

#include <algorithm>

#include "base/random.hpp"
#include "ir/bind.hpp"

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

// Elsewhere every rank knows all lengths and a proof keeps those of different units apart.
bool knows_uneven(Collective collective) {
  return collective == Collective::alltoall || collective == Collective::gather ||
         collective == Collective::scatter;
}

void add_variants(const Shape& base, std::vector<Shape>& shapes) {
  const int places = knows_in_place(base.collective) ? 2 : 1;
  const bool has_others = has_op(base.collective) || knows_uneven(base.collective);
  for (int variant = 0; variant < places * (has_others ? 2 : 1); ++variant)
    for (bool fused : {false, true})
      for (int segments : {1, 3}) {
        Shape shape = base;
        shape.in_place = variant % places == 1;
        const bool other = variant / places == 1;
        shape.ordered = other && has_op(base.collective);
        shape.uneven = other && knows_uneven(base.collective);
        shape.fused = fused;
        shape.cut.segments = segments;
        shape.cut.window = segments > 1 ? 2 : 1;
        shapes.push_back(shape);
      }
}

bool has_tail(const Algorithm& algorithm, const Shape& shape) {
  const Problem problem = problem_of(algorithm, shape, 0);
  return !why_not(algorithm, problem) && build(algorithm, problem, shape.cut.knobs).tail > 0;
}

// The shape without nodes, and with those of every equal size, neighbours and not.
std::vector<Shape> on_equal_nodes(const Shape& shape) {
  std::vector<Shape> shapes{shape};
  for (int group = 1; group < shape.ranks; ++group)
    for (bool scattered : {false, true}) {
      if (shape.ranks % group != 0 || (scattered && group == 1)) continue;
      shapes.push_back(shape);
      shapes.back().group = group;
      shapes.back().scattered = scattered;
    }
  return shapes;
}

// The shape on nodes: of equal and unequal size, side by side and in turn, one to a rank, and all
// ranks on one.
std::vector<Shape> on_nodes(const Shape& shape) {
  std::vector<Shape> shapes;
  const int p = shape.ranks;
  const auto add = [&](auto&& node_of) {
    std::vector<int> nodes;
    for (int rank = 0; rank < p; ++rank) nodes.push_back(node_of(rank));
    const auto same = [&](const Shape& known) { return known.nodes == nodes; };
    if (std::any_of(shapes.begin(), shapes.end(), same)) return;
    shapes.push_back(shape);
    shapes.back().nodes = nodes;
  };
  add([](int) { return 0; });
  add([](int rank) { return rank; });
  if (p < 3) return shapes;
  add([&](int rank) { return rank * 2 / p; });
  add([](int rank) { return rank % 2; });
  add([&](int rank) { return rank == 0 ? 0 : 1 + (rank - 1) * 2 / (p - 1); });   // 1 + many + many
  return shapes;
}

// True if the schedule depends on nodes. Binding renames peers alone, so it is tried whole and not
// fused.
bool knows_nodes(const Algorithm& algorithm, const Shape& shape) {
  if (algorithm.cost(problem_of(algorithm, shape, 0), shape.cut.knobs).in_node_order) return true;
  return shape.cut.segments == 1 && !shape.fused &&
         is_bound(algorithm, problem_of(algorithm, shape, 0));
}

// Shapes that show how an algorithm takes ranks that are not alike.
std::vector<Shape> placed(const Algorithm& algorithm, const Shape& shape) {
  std::vector<Shape> shapes;
  if (algorithm.by_nodes()) {
    for (bool no_staging : {false, true}) {
      for (Shape& one : on_nodes(shape)) {
        one.no_staging = no_staging;
        shapes.push_back(std::move(one));
      }
    }
    return shapes;
  }
  shapes = on_equal_nodes(shape);
  // on nodes of unequal size, not side by side
  if (!algorithm.is_load_store() && shape.ranks > 2) {
    shapes.push_back(shape);
    for (int rank = 0; rank < shape.ranks; ++rank) shapes.back().nodes.push_back(rank == 1);
  }
  std::erase_if(shapes, [&](const Shape& one) {
    return (one.group > 0 || !one.nodes.empty()) && !knows_nodes(algorithm, one);
  });
  return shapes;
}

// Draws `count` different ranks.
std::vector<int> drawn(int ranks, int count, Random& random) {
  std::vector<int> late;
  while (static_cast<int>(late.size()) < count)
    if (const int rank = static_cast<int>(random.below(static_cast<std::size_t>(ranks)));
        std::find(late.begin(), late.end(), rank) == late.end())
      late.push_back(rank);
  return late;
}

// The shape without late ranks, and with every set of them; in pieces, or in groups, with one.
std::vector<Shape> with_late(const Algorithm& algorithm, const Shape& shape) {
  std::vector<Shape> shapes{shape};
  if (!algorithm.expects_late()) return shapes;
  for (std::vector<int>& late : late_sets(shape.ranks)) {
    const bool some = static_cast<int>(late.size()) == (shape.ranks + 3) / 4;
    const bool placed = shape.group > 0 || !shape.nodes.empty();
    if ((shape.cut.segments > 1 || placed) && !some) continue;
    shapes.push_back(shape);
    shapes.back().late = std::move(late);
    if (shape.cut.segments > 1 || placed) break;
  }
  return shapes;
}

}  // namespace

std::vector<std::vector<int>> late_sets(int ranks) {
  std::vector<std::vector<int>> sets;
  if (ranks > kAllLate) {
    Random random(static_cast<std::uint64_t>(ranks));
    for (int count : {1, ranks / 8, ranks / 4, ranks / 2}) {
      std::vector<int> late = drawn(ranks, count, random);
      if (std::find(sets.begin(), sets.end(), late) == sets.end()) sets.push_back(std::move(late));
    }
    return sets;
  }
  for (int bits = 1; bits < 1 << ranks; ++bits) {
    std::vector<int> late;
    for (int rank = 0; rank < ranks; ++rank)
      if (bits >> rank & 1) late.push_back(rank);
    if (bits % 2 == 0) std::reverse(late.begin(), late.end());
    sets.push_back(std::move(late));
  }
  return sets;
}

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

std::vector<Knobs> knob_corners(const Algorithm& algorithm) {
  std::vector<Knobs> corners;
  if (algorithm.takes.radix)
    for (int radix : {2, 3, 4, 16}) corners.push_back({.radix = radix});
  if (algorithm.takes.blocks)
    for (int blocks : {1, 2, 3, 5}) corners.push_back({.blocks = blocks});
  return corners;
}

std::vector<Shape> shapes_of(const Algorithm& algorithm, int max_ranks) {
  std::vector<Shape> shapes;
  for (const Shape& shape : sweep(algorithm.collective, max_ranks))
    for (const Shape& one : placed(algorithm, shape))
      for (Shape& each : with_late(algorithm, one)) shapes.push_back(std::move(each));
  return shapes;
}

std::vector<Shape> sweep(const Algorithm& algorithm, int max_ranks) {
  std::vector<Shape> shapes;
  for (const Shape& shape : shapes_of(algorithm, max_ranks)) {
    if (algorithm.uses(Access::staging) && shape.cut.segments > 1) continue;   // it takes blocks
    shapes.push_back(shape);
    if (shape.cut.segments > 1 && has_tail(algorithm, shape)) {
      shapes.push_back(shape);
      shapes.back().cut.whole_tail = true;
    }
    if (algorithm.can_be_canonical()) {
      shapes.push_back(shape);
      shapes.back().canonical = true;
    }
    if (shape.ranks > kKnobRanks || shape.cut.segments > 1) continue;
    for (const Knobs& knobs : knob_corners(algorithm)) {
      shapes.push_back(shape);
      shapes.back().cut.knobs = knobs;
    }
  }
  return shapes;
}

}  // namespace paceline
