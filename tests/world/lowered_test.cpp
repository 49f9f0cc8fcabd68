// A communicator runs the schedule that verify proves and the simulator prices, step by step and
// edge by edge. The test notices a lowering that differs in any pass.
#include <doctest/doctest.h>

#include <functional>

#include "base/error.hpp"
#include "base/str.hpp"
#include "ir/fuse.hpp"
#include "ir/in_step.hpp"
#include "ir/lower.hpp"
#include "ir/pipeline.hpp"
#include "ir/load_store.hpp"
#include "runtime/compile.hpp"
#include "world/worlds.hpp"

using namespace paceline;
using namespace paceline::test;

namespace {

using Lowering = std::function<Schedule(const Algorithm&, const Problem&, const Cut&)>;

constexpr std::size_t kCount = 60;
constexpr StagingLimits kStaging{.bytes = 64u << 20, .one_node = true};

Schedule as_run(const Algorithm& a, const Problem& problem, const Cut& cut) {
  Call call;
  call.collective = a.collective;
  call.type = Type::f32;
  call.count = a.collective == Collective::barrier ? 0 : kCount;
  const Choice choice{.algorithm = &a, .cut = cut, .why = "asked for"};
  return *compile(choice, problem, even_layout(problem, call.count), call, kStaging).schedule;
}

// The passes by hand; a mutant leaves one out or takes another number.
struct Passes {
  bool fuses = true, keeps_step = true, keeps_order = true, keeps_tail = true;
  bool keeps_window = true, keeps_knobs = true;
};

Lowering by_hand(const Passes& passes) {
  return [=](const Algorithm& a, const Problem& problem, const Cut& cut) {
    Schedule s = build(a, problem, passes.keeps_knobs ? cut.knobs : Knobs{});
    if (passes.fuses) s = fuse(std::move(s));
    if (cut.in_step && passes.keeps_step) s = in_step(s);
    s = pipeline(std::move(s), cut.segments, passes.keeps_window ? cut.window : 1,
                 cut.whole_tail && passes.keeps_tail ? Tail::whole : Tail::cut);
    const bool by_memory = problem.one_node && a.is_load_store() && s.pipeline > 1;
    return by_memory && passes.keeps_order ? in_order(std::move(s)) : s;
  };
}

std::vector<Cut> cuts_of(const Algorithm& a) {
  std::vector<Cut> cuts{kUncut};
  if (a.takes.radix) cuts.push_back({1, 1, {.radix = 3}});
  if (a.takes.blocks) cuts.push_back({1, 1, {.blocks = 3}});
  if (a.uses(Access::staging)) return cuts;   // these take blocks
  cuts.push_back({.segments = 3, .window = 2});
  cuts.push_back({.segments = 4, .window = 2, .in_step = true});
  cuts.push_back({.segments = 3, .window = 2, .whole_tail = true});
  return cuts;
}

struct Compared {
  int same = 0, differ = 0;
  std::string first;   // of those that differ
};

Compared compared(const Lowering& lowering) {
  Compared out;
  for (const Algorithm* a : registry())
    for (int ranks = 1; ranks <= by_length(4, 5, 9); ++ranks)
      for (const Cut& cut : cuts_of(*a)) {
        const Shape shape{.collective = a->collective, .ranks = ranks, .fused = true, .cut = cut};
        if (!accepts(*a, shape)) continue;
        const World proven = make_world(*a, shape);
        for (int rank = 0; rank < ranks; ++rank) {
          const bool same = print(lowering(*a, problem_of(*a, shape, rank), cut)) ==
                            print(proven[static_cast<std::size_t>(rank)]);
          ++(same ? out.same : out.differ);
          if (!same && out.first.empty())
            out.first = str(describe(*a, shape), ", rank ", rank);
        }
      }
  return out;
}

}  // namespace

TEST_CASE("lower: what a communicator runs is what is proven") {
  const Compared run = compared(as_run);
  CHECK_MESSAGE(run.differ == 0, run.first);
  CHECK(run.same > 1000);
}

TEST_CASE("lower: passes in another order or with other numbers are noticed") {
  CHECK(compared(by_hand({})).differ == 0);   // it is the pass left out that makes the mutant
  CHECK(compared(by_hand({.fuses = false})).differ > 0);
  CHECK(compared(by_hand({.keeps_step = false})).differ > 0);
  CHECK(compared(by_hand({.keeps_order = false})).differ > 0);
  CHECK(compared(by_hand({.keeps_tail = false})).differ > 0);
  CHECK(compared(by_hand({.keeps_window = false})).differ > 0);
  CHECK(compared(by_hand({.keeps_knobs = false})).differ > 0);
}

TEST_CASE("lower: a number left open is 1, and a negative one an error") {
  const Algorithm& ring = find_algorithm(Collective::allreduce, "ring");
  const Problem problem{.ranks = 3};
  CHECK(print(lower(ring, problem, {})) == print(lower(ring, problem, kUncut)));
  CHECK_THROWS_AS(lower(ring, problem, {.segments = -1, .window = 1}), Error);
  CHECK_THROWS_AS(lower(ring, problem, {.segments = 1, .window = -1}), Error);
}
