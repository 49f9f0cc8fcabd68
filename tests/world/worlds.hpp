// Worlds for tests: those that an algorithm is tried in, worlds by hand, and the length of runs.
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "coll/registry.hpp"
#include "ir/compose.hpp"
#include "verify/sweep.hpp"

namespace paceline::test {

// Sanitizer builds set PACELINE_SHORT, the nightly run PACELINE_LONG.
inline bool short_run() { return std::getenv("PACELINE_SHORT") != nullptr; }
inline bool long_run() { return std::getenv("PACELINE_LONG") != nullptr; }

template <class Number>
Number by_length(Number brief, Number usual, Number thorough) {
  return short_run() ? brief : long_run() ? thorough : usual;
}

inline constexpr Cut kPipes[] = {{1, 1}, {2, 1}, {2, 2}, {2, 3}, {5, 1}, {5, 2}, {5, 3},
                                 {.segments = 3, .window = 2, .whole_tail = true}};

// The worlds of a sweep, whole: the caller adds the pipelines.
inline std::vector<Shape> whole(std::vector<Shape> shapes) {
  std::erase_if(shapes, [](const Shape& shape) { return shape.cut.segments > 1; });
  return shapes;
}
inline std::vector<Shape> plain_shapes(Collective collective, int most_ranks) {
  return whole(sweep(collective, most_ranks));
}
// The same with fewer sets of late ranks: those of one or two with the first or the last rank.
inline std::vector<Shape> plain_shapes(const Algorithm& algorithm, int most_ranks) {
  std::vector<Shape> shapes = whole(shapes_of(algorithm, most_ranks));
  std::erase_if(shapes, [](const Shape& shape) {
    const std::vector<int>& late = shape.late;
    if (late.empty() || shape.ranks > kAllLate) return false;
    return late.size() > 2 || (late.front() != 0 && late.front() != shape.ranks - 1);
  });
  return shapes;
}

inline bool accepts(const Algorithm& algorithm, const Shape& shape) {
  return !why_not(algorithm, problem_of(algorithm, shape, shape.root));
}

// Calls each(algorithm, shape) for every problem that the algorithm accepts.
template <class Each>
void for_all(int most_ranks, Each&& each) {
  for (const Algorithm* a : registry())
    for (const Shape& shape : plain_shapes(*a, most_ranks))
      if (accepts(*a, shape)) each(*a, shape);
}

inline constexpr Knobs kFewBlocks{.blocks = 2};   // where the number of orders grows with the steps

inline World piped(const Algorithm& a, Shape& shape, const Cut& pipe, const Knobs& knobs = {}) {
  shape.cut = a.uses(Access::staging) ? kUncut : pipe;   // those with a stage take blocks
  shape.cut.knobs = knobs;
  return make_world(a, shape);
}

// A world whose ranks all follow author(problem, builder).
template <class Author>
World by_hand(Problem problem, int cuts, Author&& author) {
  World world;
  for (problem.rank = 0; problem.rank < problem.ranks; ++problem.rank) {
    Builder builder(problem, cuts);
    author(static_cast<const Problem&>(problem), builder);
    world.push_back(std::move(builder).take("by_hand"));
  }
  return world;
}

// Barrier: every rank signals every other and waits for their signals.
inline void meet(const Problem& pb, Builder& b) {
  for (int k = 1; k < pb.ranks; ++k) b.signal((pb.rank + k) % pb.ranks);
  for (int k = 1; k < pb.ranks; ++k) b.wait((pb.rank + k) % pb.ranks);
}

// Allreduce over memory that all can reach: every rank sums its block straight from all inputs,
// then fetches the other sums. It meets a third time so that no rank leaves while a peer reads it.
inline void shared_allreduce(const Problem& pb, Builder& b) {
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

// Broadcast over memory that all can reach: the others fetch, and say when they have done so.
inline void shared_broadcast(const Problem& pb, Builder& b) {
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

inline World shared_world(Collective collective, int ranks, bool in_place = false) {
  Problem problem;
  problem.collective = collective;
  problem.ranks = ranks;
  problem.root = ranks - 1;
  problem.in_place = in_place;
  if (collective == Collective::broadcast) return by_hand(problem, 1, shared_broadcast);
  return by_hand(problem, ranks, shared_allreduce);
}

}  // namespace paceline::test
