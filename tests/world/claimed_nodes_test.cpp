// Algorithms whose positions the ranks of each of several nodes claim: proven for every order in
// which those can come, and executed. As they are numbered they are in mixed_test.cpp.
#include <doctest/doctest.h>

#include "coll/algorithms.hpp"
#include "ir/bind.hpp"
#include "simulate/simulate.hpp"
#include "verify/positions.hpp"
#include "world/loop_nodes.hpp"
#include "world/mutate.hpp"

using namespace paceline;
using namespace paceline::test;

namespace {

std::vector<const Algorithm*> claimed() {
  std::vector<const Algorithm*> out;
  for (const Algorithm* a : registry())
    if (a->claimed && a->by_nodes) out.push_back(a);
  return out;
}

const NodeOf kTwoOfFour = {0, 0, 0, 0, 1, 1, 1, 1};

std::vector<NodeOf> all_nodes() {
  std::vector<NodeOf> all{std::begin(kNodes), std::end(kNodes)};
  all.insert(all.end(), {{0, 0, 0, 0, 1}, {0, 1, 1, 1, 1, 0}});
  return all;
}

}  // namespace

TEST_CASE("claimed on nodes: proven for every order of arrival on each of them") {
  int proven = 0;
  for (const Algorithm* a : claimed())
    for (const NodeOf& nodes : all_nodes())
      for (const std::vector<int>& order : all_orders(*a, shape_on(*a, nodes)))
        for (int variant = 0; variant < 4; ++variant)
          for (const Cut& pipe : kPipes) {
            Shape shape = shape_on(*a, nodes);
            shape.order = order;
            shape.fused = variant % 2 == 1;
            shape.in_place = variant / 2 == 1;
            const Verdict verdict = verify(piped(*a, shape, pipe));
            CHECK_MESSAGE(verdict, describe(*a, shape), ": ", verdict.fault);
            proven += bool(verdict);
          }
  CHECK(proven > 1000);
  MESSAGE(proven, " worlds proven");
}

TEST_CASE("claimed on nodes: orders are all there are, and leave ranks on their nodes") {
  for (const Algorithm* a : claimed()) {
    CHECK(all_orders(*a, shape_on(*a, {0, 1, 0, 1})).size() == 1);   // a leader and another one
    CHECK(all_orders(*a, shape_on(*a, {0, 1, 1, 1, 1, 0, 0})).size() == 6 * 2);
    const Problem problem = problem_of(*a, shape_on(*a, {0, 1, 1, 0, 1, 0}), 0);
    CHECK(claimed_order(*a, problem, {9, 9, 5, 5, 4, 1}) == std::vector{0, 1, 4, 5, 2, 3});
  }
}

TEST_CASE("mutants: in an order of arrival, a lost step, flag or message") {
  int rejected = 0;
  for (const Algorithm* a : claimed()) {
    Shape shape = shape_on(*a, kTwoOfFour);
    shape.order = {0, 3, 1, 2, 4, 6, 7, 5};
    const World world = make_world(*a, shape);
    REQUIRE(verify(world));
    Mutants mutants = lost_edges(world);
    for (const Kind kind : {Kind::copy, Kind::reduce, Kind::finish, Kind::signal, Kind::recv})
      for (Mutant& mutant : everywhere(world, "lost step", is(kind), erase))
        mutants.push_back(std::move(mutant));
    for (const Mutant& mutant : mutants) {
      CHECK_MESSAGE(!verify(mutant.world), describe(*a, shape), ": ", mutant.what);
      ++rejected;
    }
  }
  CHECK(rejected > 100);
  MESSAGE(rejected, " mutants rejected");
}

TEST_CASE("claimed on nodes: the right results, whoever comes when, with several under way") {
  long cases = 0;
  for (const NodeOf& nodes : {NodeOf{0, 0, 0, 0, 1, 1, 1}, {0, 1, 1, 0, 2, 0}, {0, 1, 2, 2}}) {
    LoopNodes world(nodes);
    Random random(nodes.size());
    const int p = static_cast<int>(nodes.size());
    for (const Algorithm* a : claimed())
      for (std::size_t count : {1, 1003, 40000})
        for (int turn = 0; turn < by_length(10, 40, 200); ++turn, ++cases) {
          Case c{a->collective, a->name, p, count, 0, turn % 2 == 1};
          if (turn % 3 == 2) c.segments = 12, c.window = 2;
          const Case fixed{a->collective, "hierarchical_rsa", p, count};
          const std::string bad = world.run<double>({c, fixed, c, c}, random);
          CHECK_MESSAGE(bad.empty(), bad);
        }
  }
  MESSAGE(cases, " cases");
}

TEST_CASE("claimed on nodes: long messages go in segments, and what cannot be is refused") {
  Random random(3);
  LoopNodes little({0, 0, 0, 1, 1}, 4096), none({0, 0, 0, 1, 1}, 0);
  LoopNodes stable({0, 0, 0, 1, 1}, StagingMemory::kBytes, Numbers::stable);
  const auto refused = [](LoopNodes& world, const Case& c, const char* why) {
    for (int rank = 0; rank < 5; ++rank) {   // before anything is sent, on every rank
      test::Buffers<float> data(c, rank);
      CHECK_THROWS_WITH_AS(world.ranks[std::size_t(rank)].run(data.call()),
                           doctest::Contains(why), Error);
    }
  };
  for (const Algorithm* a : claimed()) {
    Case c{a->collective, a->name, 5, 1 << 14};
    CHECK(little.run<float>({c}, random) == "");
    refused(none, c, "ranks of a node take positions in its staging buffers");
    refused(stable, c, "in the order in which they come");
    refused(stable, c, "Use algorithm=hierarchical_rsa, or auto.");
    c.op = Op::max;   // the same bits in any order
    CHECK(stable.run<float>({c}, random) == "");
    c.segments = c.window = 2;
    refused(little, c, "of every rank's staging buffer");
  }
}

TEST_CASE("claimed on nodes: a rank that does not come, is killed or calls otherwise is named") {
  for (const Algorithm* a : claimed())
    for (int absent = 0; absent < 6; ++absent)
      for (const char* how : {"late", "killed", "otherwise"}) {
        const std::string name = str("rank ", absent);
        LoopNodes world({0, 1, 1, 1, 1, 0});
        CAPTURE(a->name);
        CAPTURE(name);
        CAPTURE(how);
        if (how == std::string("killed")) world.net.kill(absent);
        const std::vector<std::string> errors =
            told(world, *a, absent, how == std::string("otherwise") ? 98 : 0);
        for (int r = 0; r < 6; ++r) {
          if (r == absent) continue;
          CHECK_MESSAGE(errors[std::size_t(r)].find(name) != std::string::npos, "rank ", r, ": ",
                        errors[std::size_t(r)]);
        }
      }
}

// The point of it: who comes last finds the others' sum made.
TEST_CASE("claimed on nodes: once the last rank has come, two sums of its node are left") {
  Machine machine;
  machine.gamma_s_per_byte = 1;   // sums alone take time
  const auto left = [&](const Algorithm& a, int late) {
    std::vector<double> arrivals(kTwoOfFour.size(), 0.0);
    arrivals[std::size_t(late)] = 1e6;
    Shape shape = shape_on(a, kTwoOfFour);
    if (a.claimed) shape.order = claimed_order(a, problem_of(a, shape, 0), arrivals);
    const World world = make_world(a, shape);
    const std::size_t count = std::size_t(world[0].cuts) * 8;
    return (simulate(world, count, 4, machine, arrivals).span_s() - 1e6) / double(4 * count);
  };
  const double across = left(allreduce_hierarchical_rsa, 0) - 3;
  CHECK(across > 0);
  for (const Algorithm* a : claimed()) {
    for (int late : {1, 2, 3, 6}) CHECK(left(*a, late) == doctest::Approx(2 + across));
    for (int late : {0, 4}) CHECK(left(*a, late) == doctest::Approx(1 + across));   // a leader
  }
}
