#include "world/worlds.hpp"

namespace paceline::test {
namespace {

std::vector<Shape> whole(std::vector<Shape> shapes) {
  std::erase_if(shapes, [](const Shape& shape) { return shape.cut.segments > 1; });
  return shapes;
}

}  // namespace

std::vector<Shape> plain_shapes(Collective collective, int most_ranks) {
  return whole(sweep(collective, most_ranks));
}

std::vector<Shape> plain_shapes(const Algorithm& algorithm, int most_ranks) {
  std::vector<Shape> shapes = whole(shapes_of(algorithm, most_ranks));
  std::erase_if(shapes, [](const Shape& shape) {
    const std::vector<int>& late = shape.late;
    if (late.empty() || shape.ranks > kAllLate) return false;
    return late.size() > 2 || (late.front() != 0 && late.front() != shape.ranks - 1);
  });
  return shapes;
}

bool accepts(const Algorithm& algorithm, const Shape& shape) {
  return !why_not(algorithm, problem_of(algorithm, shape, shape.root));
}

World piped(const Algorithm& a, Shape& shape, const Cut& pipe, const Knobs& knobs) {
  shape.cut = a.uses(Access::staging) ? kUncut : pipe;   // those with a stage take blocks
  shape.cut.knobs = knobs;
  return make_world(a, shape);
}

void meet(const Problem& pb, Builder& b) {
  for (int k = 1; k < pb.ranks; ++k) b.signal((pb.rank + k) % pb.ranks);
  for (int k = 1; k < pb.ranks; ++k) b.wait((pb.rank + k) % pb.ranks);
}

void shared_allreduce(const Problem& pb, Builder& b) {
  const int p = pb.ranks, r = pb.rank;
  meet(pb, b);
  std::vector<Segment> sources;
  for (int i = 0; i < p; ++i) sources.push_back(b.of_peer(i, b.input(r)));
  b.reduce(sources, b.output(r));
  b.finish(b.output(r));
  meet(pb, b);
  for (int k = 1; k < p; ++k) {
    const int i = (r + k) % p;
    b.copy(b.of_peer(i, b.output(i)), b.output(i));
  }
  meet(pb, b);
}

void shared_broadcast(const Problem& pb, Builder& b) {
  if (pb.rank == pb.root) {
    for (int i = 0; i < pb.ranks; ++i)
      if (i != pb.root) b.signal(i);
    for (int i = 0; i < pb.ranks; ++i)
      if (i != pb.root) b.wait(i);
    return;
  }
  b.wait(pb.root);
  b.copy(b.of_peer(pb.root, b.output()), b.output());
  b.signal(pb.root);
}

World shared_world(Collective collective, int ranks, bool in_place) {
  Problem problem;
  problem.collective = collective;
  problem.ranks = ranks;
  problem.root = ranks - 1;
  problem.in_place = in_place;
  if (collective == Collective::broadcast) return by_hand(problem, 1, shared_broadcast);
  return by_hand(problem, ranks, shared_allreduce);
}

}  // namespace paceline::test
