// Late ranks in a problem: the algorithms that see them, their numbers, and the refused lists.
#include <doctest/doctest.h>

#include "base/error.hpp"
#include "coll/algorithms.hpp"
#include "coll/registry.hpp"
#include "ir/compose.hpp"
#include "verify/sweep.hpp"

using namespace paceline;

namespace {

std::vector<int> seen;   // by the algorithm below, when it last built

Algorithm watcher() {
  Algorithm a = allreduce_binomial;
  a.name = "watcher";
  a.arrivals = Arrivals::predicted;
  a.bits = Bits::by_rank;
  a.build = [](const Problem& pb, const Knobs&, Builder&) { seen = pb.late; };
  return a;
}

Problem late_ones(int ranks, std::vector<int> late) {
  Problem problem{.collective = Collective::allreduce, .ranks = ranks, .rank = 1};
  problem.late = std::move(late);
  return problem;
}

}  // namespace

TEST_CASE("late: who does not expect late ranks builds the same schedule") {
  for (const Algorithm* a : registry()) {
    if (a->expects_late() || a->is_load_store()) continue;
    CAPTURE(a->name);
    Problem plain{.collective = a->collective, .ranks = 4, .rank = 1};
    Problem late = plain;
    late.late = {3, 0};
    if (why_not(*a, plain)) continue;   // it wants what this world lacks
    const Schedule one = build(*a, late);
    CHECK(print(one) == print(build(*a, plain)));
    CHECK(one.problem == plain);
  }
}

TEST_CASE("late: who expects them sees them, the latest last") {
  CHECK(build(watcher(), late_ones(5, {4, 2})).problem.late == std::vector{4, 2});
  CHECK(seen == std::vector{4, 2});
  CHECK(print(build(watcher(), late_ones(5, {4, 2}))).find("late: 4 2") != std::string::npos);
}

TEST_CASE("late: where ranks stand at positions, and in a phase, they have numbers of their own") {
  Problem problem = late_ones(4, {3, 0});
  problem.nodes = {0, 1, 0, 1};   // the order is 0 2 1 3
  build(watcher(), problem);
  CHECK(seen == std::vector{3, 0});
  problem.late = {1, 2};
  CHECK(build(watcher(), problem).problem.late == std::vector{1, 2});
  CHECK(seen == std::vector{2, 1});

  const Algorithm phase = watcher();
  Builder b(late_ones(5, {4, 0, 2}), 1);
  const Region all = region_of(b.output());
  compose(b, 1, {{.algorithm = &phase, .members = {1, 2, 4}, .input = all, .output = all}});
  CHECK(seen == std::vector{2, 1});
}

TEST_CASE("late: what is no list of ranks is refused") {
  CHECK_THROWS_AS(build(watcher(), late_ones(3, {3})), Error);
  CHECK_THROWS_AS(build(watcher(), late_ones(3, {-1})), Error);
  CHECK_THROWS_AS(build(watcher(), late_ones(3, {1, 1})), Error);
  CHECK_NOTHROW(build(watcher(), late_ones(3, {2, 1, 0})));
}

TEST_CASE("late: of few ranks every set is swept, of more some") {
  CHECK(late_sets(1).size() == 1);
  CHECK(late_sets(kAllLate).size() == (1u << kAllLate) - 1);
  for (int ranks : {1, 7, 8, 30, 64})
    for (const std::vector<int>& late : late_sets(ranks)) {
      CHECK(!late.empty());
      CHECK_NOTHROW(check_late(late_ones(ranks, late)));
    }
}
