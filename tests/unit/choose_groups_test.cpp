// Schedules in groups of ranks of one node are taken where somebody asks for groups, and only then.
#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "coll/registry.hpp"
#include "transport/shm/staging.hpp"
#include "tune/choose.hpp"

using namespace paceline;

namespace {

Problem problem_of(Collective collective, int ranks) {
  Problem p;
  p.collective = collective;
  p.ranks = ranks;
  return p;
}

}  // namespace

TEST_CASE("choose: grouped for long messages where groups are asked for, and nowhere else") {
  const auto chosen_for = [](Collective c, std::vector<int> groups, std::size_t bytes,
                             bool by_groups = true) {
    Problem p = problem_of(c, 8);
    p.one_node = true;
    p.groups = std::move(groups);
    const ChoiceInputs now{bytes, usual_machine(), stage_bytes(8u << 20, 8), by_groups};
    return std::string(choose(p, now).algorithm->name);
  };
  const std::vector<int> none, two{0, 1, 0, 1, 0, 1, 0, 1};
  for (const Algorithm* a : registry()) {
    if (!a->grouped) continue;
    CAPTURE(name_of(a->collective));
    CHECK(chosen_for(a->collective, two, 64 << 10) == "numa");
    CHECK(chosen_for(a->collective, two, 64 << 20) == "numa");
    CHECK(chosen_for(a->collective, two, (64 << 10) - 1) != "numa");
    CHECK(chosen_for(a->collective, none, 64 << 20) != "numa");
    CHECK(chosen_for(a->collective, two, 64 << 20, false) != "numa");
  }
  Problem ordered = problem_of(Collective::allreduce, 8);   // these are no neighbours
  ordered.one_node = true;
  ordered.commutative = false;
  ordered.groups = two;
  const ChoiceInputs now{1 << 20, usual_machine(), stage_bytes(8u << 20, 8), true};
  CHECK(choose(ordered, now).algorithm->name == std::string("two_shot"));
  CHECK_THROWS_AS(choose(ordered, now, {"numa"}), Error);
}
