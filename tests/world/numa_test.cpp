// Algorithms that take ranks of a node in groups: what crosses between groups, the meetings that
// they need, and real data through them. That they are proven is in verify_test.cpp.
#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <memory>

#include "base/random.hpp"
#include "coll/algorithms.hpp"
#include "runtime/progress/session.hpp"
#include "simulate/simulate.hpp"
#include "transport/loop/loop.hpp"
#include "world/collective_case.hpp"
#include "world/mutate.hpp"
#include "world/worlds.hpp"

using namespace paceline;
using namespace paceline::test;

namespace {

Shape shape_of(const Algorithm& a, int ranks, int group, bool scattered = false) {
  return {.collective = a.collective, .ranks = ranks, .group = group, .scattered = scattered,
          .cut = {.knobs = {.blocks = 2}}};
}

// Of the message, what ranks of one group read from those of others, the most of any group.
double crossing(const Algorithm& a, const Shape& shape) {
  const World world = make_world(a, shape);
  Shape grouped = shape;
  const std::vector<int> group_of = problem_of(a, grouped, 0).groups;
  std::map<int, double> blocks;
  for (const Schedule& s : world)
    for (const Segment& segment : s.segments) {
      const int group = group_of[std::size_t(s.problem.rank)];
      if (segment.owner != kOwn && group_of[std::size_t(segment.owner)] != group)
        blocks[group] += segment.blocks;
    }
  double most = 0;
  for (const auto& [group, read] : blocks) most = std::max(most, read);
  return most / world[0].blocks();
}

bool near(double a, double b) { return std::abs(a - b) < 1e-9; }

std::vector<const Algorithm*> grouped_ones() {
  std::vector<const Algorithm*> out;
  std::copy_if(registry().begin(), registry().end(), std::back_inserter(out),
               [](const Algorithm* a) { return a->grouped; });
  return out;
}

// Without the meeting of that number, counted on every rank.
World without_meeting(World world, int which) {
  for (Schedule& s : world) {
    std::vector<Step> kept;
    int meetings = -1;
    Kind before = Kind::wait;
    for (const Step& step : s.steps) {
      const bool talks = step.kind == Kind::signal || step.kind == Kind::wait;
      if (step.kind == Kind::signal && before != Kind::signal) ++meetings;
      before = step.kind;
      if (!talks || meetings != which) kept.push_back(step);
    }
    s.steps = kept;
    derive_slots(s);
    derive_edges(s);
  }
  return world;
}

}  // namespace

TEST_CASE("grouped: into a group comes what the header says, and no more") {
  for (const auto& [p, g] : {std::pair{4, 2}, {6, 2}, {6, 3}, {8, 2}, {16, 8}})
    for (bool scattered : {false, true}) {
      const double k = p / g, others = (k - 1) / k;
      CAPTURE(p);
      CAPTURE(g);
      const auto crosses = [&](const Algorithm& a) {
        return crossing(a, shape_of(a, p, g, scattered));
      };
      CHECK(near(crosses(allreduce_numa), 2 * others));
      CHECK(near(crosses(broadcast_numa), 1));
      CHECK(near(crosses(reduce_numa), k - 1));
      CHECK(near(crosses(reduce_scatter_numa), others));
      CHECK(near(crosses(allgather_numa), others));
      // The measure tells them from those that take all ranks as equal.
      CHECK(crosses(allreduce_two_shot) > 1.4 * crosses(allreduce_numa));
      CHECK(near(crosses(broadcast_staged), g));
    }
}

TEST_CASE("grouped: rounds and sums are what the cost says") {
  for (const Algorithm* a : grouped_ones())
    for (const auto& [p, g] : {std::pair{4, 2}, {6, 3}, {6, 2}, {8, 4}, {4, 1}, {5, 5}})
      for (int blocks : {1, 2, 5}) {
        Shape shape = shape_of(*a, p, g);
        shape.cut.knobs.blocks = blocks;
        const World world = make_world(*a, shape);
        const std::size_t count = std::size_t(world[0].cuts);
        const auto along = [&](double alpha_s, double gamma_s) {
          Machine m;
          m.across = {alpha_s, 0};
          m.gamma_s_per_byte = gamma_s;
          return simulate(world, count, 4, m).span_s();
        };
        const Cost cost = a->cost(world[0].problem, shape.cut.knobs);
        const double n = 4 * double(count) * world[0].units;
        CAPTURE(describe(*a, shape));
        CHECK(near(along(1, 0), cost.rounds));
        if (blocks == 1) CHECK(near(along(0, 1) / n, cost.reduced));
      }
}

TEST_CASE("grouped: no meeting can be left out") {
  for (const Algorithm* a : {&allreduce_numa, &reduce_numa, &reduce_scatter_numa,
                             &allgather_numa, &broadcast_numa})
    for (bool scattered : {false, true}) {
      const World world = make_world(*a, shape_of(*a, 4, 2, scattered));
      REQUIRE(verify(world));
      if (a == &broadcast_numa) continue;   // its ranks signal differently often
      const int meetings = static_cast<int>(a->cost(world[0].problem, {.blocks = 2}).rounds);
      for (int which = 0; which < meetings; ++which)
        CHECK_MESSAGE(!verify(without_meeting(world, which)), a->name, " without meeting ", which);
    }
}

TEST_CASE("mutants: a signal less, or an operand twice, in groups") {
  int rejected = 0;
  for (const Algorithm* a : grouped_ones()) {
    const World world = make_world(*a, shape_of(*a, 4, 2));
    const auto sums = [](const Schedule&, const Step& step) { return step.kind == Kind::reduce; };
    Mutants mutants = lost_signals_of(world, false);
    for (Mutant& m : everywhere(world, "an operand twice", sums, [](Schedule& s, std::uint32_t i) {
           s.segments[s.steps[i].first + 2] = s.segments[s.steps[i].first + 1];
         }))
      mutants.push_back(std::move(m));
    for (const Mutant& mutant : mutants) {
      CHECK_MESSAGE(!verify(mutant.world), name_of(a->collective), ": ", mutant.what,
                    " goes unnoticed");
      ++rejected;
    }
  }
  MESSAGE(rejected, " mutants rejected");
}

TEST_CASE("grouped: ranks in groups that the communicator knows, over loop") {
  for (const auto& [p, g] : {std::pair{4, 2}, {6, 3}, {8, 2}})
    for (bool scattered : {false, true}) {
      LoopNet net(p, {.seed = std::uint64_t(p)});
      WorldConfig config;
      config.progress = Progress::caller;
      for (int r = 0; r < p; ++r) {
        const int node = scattered ? r % (p / g) : r / g;
        config.localities.push_back({node, node});
      }
      std::vector<Communicator> ranks;
      for (int r = 0; r < p; ++r) ranks.push_back(join_transport(net.endpoint(r), config));
      Random random(7);
      for (const Algorithm* a : grouped_ones())
        for (std::size_t count : {0, 1, p + 1, 20011}) {
          const bool is_long = count * std::size_t(units_of({a->collective, p})) >= 16384;
          Case c{a->collective, is_long ? "numa" : "", p, count, p - 1, count % 2 == 0};
          std::vector<std::unique_ptr<test::Buffers<float>>> data;
          std::vector<Request> requests;
          for (int r = 0; r < p; ++r) {
            data.push_back(std::make_unique<test::Buffers<float>>(c, r));
            const Call call = data.back()->call();
            const std::string why = ranks[std::size_t(r)].explain(call);
            CHECK((why.find("numa") == 0) == is_long);
            if (count > 1) CHECK(why.find(str(p / g, " groups of ", g, " ranks")) != why.npos);
            requests.push_back(ranks[std::size_t(r)].start(call));
          }
          for (int open = p; open > 0;) {
            Request& one = requests[random.below(std::size_t(p))];
            if (one.valid() && one.test()) {
              one = Request();
              --open;
            }
          }
          for (const auto& one : data) CHECK_MESSAGE(one->check().empty(), one->check());
        }
    }
}
