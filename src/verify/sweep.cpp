#include "verify/sweep.hpp"

#include <algorithm>

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
        shape.segments = segments;
        shape.window = segments > 1 ? 2 : 1;
        shapes.push_back(shape);
      }
}

bool has_tail(const Algorithm& algorithm, const Shape& shape) {
  const Problem problem = problem_of(algorithm, shape, 0);
  return !why_not(algorithm, problem) && build(algorithm, problem, shape.knobs).tail > 0;
}

// The shape without groups, and with those of every size, neighbours and not.
std::vector<Shape> in_groups(const Shape& shape) {
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

// Whether groups make a difference. Where nothing is received, nothing is fused; what is bound is
// renamed and no more.
bool knows_groups(const Algorithm& algorithm, const Shape& shape) {
  if (algorithm.grouped) return !algorithm.staged || !shape.fused;
  return shape.segments == 1 && !shape.fused &&
         is_bound(algorithm, problem_of(algorithm, shape, 0));
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
    for (const Shape& one : in_groups(shape))
      if (one.group == 0 || knows_groups(algorithm, one)) shapes.push_back(one);
  return shapes;
}

std::vector<Shape> sweep(const Algorithm& algorithm, int max_ranks) {
  std::vector<Shape> shapes;
  for (const Shape& shape : shapes_of(algorithm, max_ranks)) {
    if (algorithm.staged && shape.segments > 1) continue;   // it takes blocks
    shapes.push_back(shape);
    if (shape.segments > 1 && has_tail(algorithm, shape)) {
      shapes.push_back(shape);
      shapes.back().whole_tail = true;
    }
    if (algorithm.canonical) {
      shapes.push_back(shape);
      shapes.back().canonical = true;
    }
    if (shape.ranks > kKnobRanks || shape.segments > 1) continue;
    for (const Knobs& knobs : knob_corners(algorithm)) {
      shapes.push_back(shape);
      shapes.back().knobs = knobs;
    }
  }
  return shapes;
}

}  // namespace paceline
