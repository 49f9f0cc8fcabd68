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
std::vector<Shape> plain_shapes(Collective collective, int most_ranks);
// The same with fewer sets of late ranks: those of one or two with the first or the last rank.
std::vector<Shape> plain_shapes(const Algorithm& algorithm, int most_ranks);

bool accepts(const Algorithm& algorithm, const Shape& shape);

// Calls each(algorithm, shape) for every problem that the algorithm accepts.
template <class Each>
void for_all(int most_ranks, Each&& each) {
  for (const Algorithm* a : registry())
    for (const Shape& shape : plain_shapes(*a, most_ranks))
      if (accepts(*a, shape)) each(*a, shape);
}

inline constexpr Knobs kFewBlocks{.blocks = 2};   // where the number of orders grows with the steps

World piped(const Algorithm& a, Shape& shape, const Cut& pipe, const Knobs& knobs = {});

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
void meet(const Problem& pb, Builder& b);

// Allreduce over memory that all can reach: every rank sums its block straight from all inputs,
// then fetches the other sums. It meets a third time so that no rank leaves while a peer reads it.
void shared_allreduce(const Problem& pb, Builder& b);

// Broadcast over memory that all can reach: the others fetch, and say when they have done so.
void shared_broadcast(const Problem& pb, Builder& b);

World shared_world(Collective collective, int ranks, bool in_place = false);

}  // namespace paceline::test
