// One run stands for all orders: this test runs all of them if possible, else many.
#include <doctest/doctest.h>

#include "verify/verify.hpp"
#include "world/worlds.hpp"

using namespace paceline;
using namespace paceline::test;

TEST_CASE("a proven world ends rightly in seeded random orders") {
  const auto seeds = by_length<std::uint64_t>(2, 2, 10);
  int runs = 0;
  for_all(by_length(4, 6, 8), [&](const Algorithm& a, Shape shape) {
    if (shape.fused && !has_op(a.collective)) return;   // the same steps
    for (const Cut& pipe : kPipes) {
      const World world = piped(a, shape, pipe, kFewBlocks);
      for (std::uint64_t seed = 0; seed < seeds; ++seed, ++runs) {
        const Verdict verdict = shake(world, seed);
        CHECK_MESSAGE(verdict, describe(a, shape), ": ", verdict.fault);
      }
      if (a.uses(Access::staging)) break;   // it takes blocks instead
    }
  });
  MESSAGE(runs, " random runs");
}

// The argument that one run stands for all of them, put to the test where all of them can be run.
TEST_CASE("exploring every interleaving agrees with the proof") {
  const auto limit = by_length<std::size_t>(200, 200, 5000);
  std::size_t states = 0;
  int complete = 0;
  std::string open;
  for_all(by_length(3, 4, 4), [&](const Algorithm& a, Shape shape) {
    if (shape.ordered || shape.scattered || (shape.fused && !has_op(a.collective))) return;
    for (const Cut& pipe :
         {kUncut, Cut{2, 2}, Cut{.segments = 2, .window = 1, .whole_tail = true}}) {
      if (pipe.segments > 1 && shape.ranks > 2) continue;
      const World world = piped(a, shape, pipe, kFewBlocks);
      std::size_t steps = 0;
      for (const Schedule& s : world) steps += s.steps.size();
      const Exploration all = explore(world, steps > 64 ? limit / 4 : limit);
      CHECK_MESSAGE(all.verdict, describe(a, shape), ": ", all.verdict.fault);
      states += all.states;
      complete += all.complete;
      if (!all.complete) open += "\n  " + describe(a, shape);
      if (a.uses(Access::staging)) break;
    }
  });
  MESSAGE(complete, " worlds explored to the end, ", states, " states; not to the end:", open);
}

TEST_CASE("an exploration that stops early says so") {
  const World world = make_world(find_algorithm(Collective::allreduce, "ring"), {.ranks = 3});
  const Exploration some = explore(world, 10);
  CHECK(some.verdict);
  CHECK(some.states == 10);
  CHECK(!some.complete);
}
