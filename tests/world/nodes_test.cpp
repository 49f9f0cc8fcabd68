// Ranks of several nodes, with messages inside nodes: bytes between the nodes and their time are
// equal for ranks numbered node by node and in turn. verify_test.cpp has the proofs.
#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "coll/algorithms.hpp"
#include "world/mutate.hpp"
#include "world/nodes.hpp"

using namespace paceline;
using namespace paceline::test;

namespace {

using enum Collective;

constexpr Nodes kNodes[] = {{2, 2}, {2, 3}, {3, 2}, {4, 2}, {4, 4}, {5, 3}, {8, 4}, {1, 5}, {5, 1}};
constexpr Collective kWithNodes[] = {allreduce, broadcast, reduce, reduce_scatter, allgather};

bool near(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(1.0, std::abs(b)); }

// Returns the part of the message that leaves or enters a node: the most of any node.
double crossing(const World& world, const std::vector<int>& node_of) {
  std::map<int, double> out, in;
  for (const Schedule& s : world)
    for (const Step& step : s.steps) {
      const int own = node_of[std::size_t(s.problem.rank)];
      const bool sends = step.kind == Kind::send;
      if ((!sends && step.kind != Kind::recv) || own == node_of[std::size_t(step.peer)]) continue;
      for (const Segment* at = s.begin(step); at != s.end(step); ++at)
        (sends ? out : in)[own] += at->blocks;
    }
  double most = 0;
  for (const auto* side : {&out, &in})
    for (const auto& [node, blocks] : *side) most = std::max(most, blocks);
  return most / world[0].blocks();
}

// The world of ranks that believe themselves to be numbered node by node.
World unaware(const Algorithm& a, const Nodes& nodes) {
  World world = make_world(a, {.collective = a.collective, .ranks = nodes.all()});
  const std::vector<int> in_turn = problem_of(a, shape_on(a, nodes, true), 0).nodes;
  for (Schedule& s : world) s.problem.nodes = in_turn;
  return world;
}

// Returns the differences between schedules and formula of an algorithm; empty: none.
std::string cost_fault(const Algorithm& a, const Shape& shape) {
  const World world = make_world(a, shape);
  const std::size_t count = std::size_t(world[0].cuts);   // an element for each block
  const double n = 4 * double(count) * world[0].units;
  const Cost cost = a.cost(world[0].problem, {});
  std::string out;
  const auto fault = [&](const char* what, const Link& across, const Link& inside, double gamma,
                         double said) {
    Machine m;
    m.across = across;
    m.inside = inside;
    m.gamma_s_per_byte = gamma;
    const double found = simulate(world, count, 4, m).span_s();
    if (!near(found, said))
      out += str(describe(a, shape), ": ", found, " ", what, ", the formula says ", said, "\n");
  };
  fault("rounds across", {1, 0}, {}, 0, cost.rounds);
  fault("bytes across", {0, 1}, {}, 0, cost.volume * n);
  fault("rounds inside", {}, {1, 0}, 0, cost.near_rounds);
  fault("bytes inside", {}, {0, 1}, 0, cost.near_volume * n);
  fault("bytes combined", {}, {}, 1, cost.reduced * n);
  return out;
}

// Returns the hidden share of the shorter time: of messages inside nodes, or across, by themselves.
double hidden(const Algorithm& a, Shape shape, int window) {
  shape.cut.segments = 8;
  shape.cut.window = window;
  const World world = make_world(a, shape);
  const auto span = [&](const char* machine) {   // a rate of 0: takes no time
    return simulate(world, 1 << 20, 8, machine_from(machine)).span_s();
  };
  const double across = span("gbit_per_s=10,inside_gbit_per_s=0");
  const double inside = span("gbit_per_s=0,inside_gbit_per_s=10");
  const double all = span("gbit_per_s=10,inside_gbit_per_s=10");
  return (across + inside - all) / std::min(across, inside);
}

}  // namespace

TEST_CASE("nodes: rounds and bytes, across and inside, are what the cost says") {
  for (const Algorithm* a : sending_in_nodes())
    for (const Nodes& nodes : kNodes)
      for (bool in_turn : {false, true}) {
        const std::string fault = cost_fault(*a, by_messages(*a, nodes, in_turn));
        CHECK_MESSAGE(fault.empty(), fault);
      }
  Algorithm cheaper = allreduce_multilane, near_by = allgather_hierarchical,
            chatty = broadcast_hierarchical;
  cheaper.cost = [](const Problem& pb, const Knobs& knobs) {
    Cost cost = allreduce_multilane.cost(pb, knobs);
    cost.near_volume /= 2;
    return cost;
  };
  near_by.cost = [](const Problem& pb, const Knobs& knobs) {
    Cost cost = allgather_hierarchical.cost(pb, knobs);
    --cost.near_rounds;
    return cost;
  };
  chatty.build = [](const Problem& pb, const Knobs& knobs, Builder& b) {
    broadcast_hierarchical.build(pb, knobs, b);
    b.send((pb.rank + 1) % pb.ranks, {});
    b.recv((pb.rank + pb.ranks - 1) % pb.ranks, {});
  };
  for (const Algorithm* a : {&cheaper, &near_by, &chatty})
    CHECK(!cost_fault(*a, by_messages(*a, {4, 2})).empty());
}

TEST_CASE("nodes: across goes no more than must, and n in each chain") {
  for (const Nodes& nodes : kNodes)
    for (bool in_turn : {false, true}) {
      const double k = nodes.count, others = (k - 1) / k;
      const auto crosses = [&](const Algorithm& a) {
        const Shape shape = by_messages(a, nodes, in_turn);
        return crossing(make_world(a, shape), problem_of(a, shape, 0).nodes);
      };
      CAPTURE(nodes.count);
      CAPTURE(nodes.ranks);
      CHECK(near(crosses(allreduce_multilane), 2 * others));
      CHECK(near(crosses(reduce_scatter_multilane), others));
      CHECK(near(crosses(allgather_multilane), others));
      CHECK(near(crosses(allgather_hierarchical), others));
      for (const Algorithm* a : {&broadcast_hierarchical_chain, &reduce_hierarchical_chain,
                                 &broadcast_chain, &reduce_chain})
        CHECK(near(crosses(*a), k > 1));
      const double p = nodes.all();   // a ring enters every node once, in whatever order
      for (const Algorithm* a : {&reduce_scatter_ring, &allgather_ring})
        if (k > 1) CHECK(near(crosses(*a), (p - 1) / p));
      if (k > 1) CHECK(near(crosses(allreduce_ring), 2 * (p - 1) / p));
    }
  // The measure distinguishes them from algorithms that ignore nodes.
  const Nodes nodes{4, 2};
  const std::vector<int> in_turn = problem_of(allreduce_ring, shape_on(allreduce_ring, nodes, true),
                                              0).nodes;
  CHECK(near(crossing(unaware(allreduce_ring, nodes), in_turn), 2 * 2 * 7.0 / 8));
  CHECK(near(crossing(unaware(broadcast_chain, nodes), in_turn), 2));
}

TEST_CASE("nodes: ranks in turn take what ranks side by side take") {
  constexpr double kMost = 1.05;
  for (const char* name : {"edr-100g", "ethernet-10g", "lab-200mbit"})
    for (const Nodes& nodes : {Nodes{2, 2}, {4, 2}, {3, 4}, {8, 4}})
      for (Collective c : kWithNodes)
        for (std::size_t n = 64; n <= 64u << 20; n *= by_length(256, 16, 4)) {
          const Machine m = machine_from(name);
          const Chosen beside({c, n}, nodes, false, m), in_turn({c, n}, nodes, true, m);
          CHECK_MESSAGE(in_turn.span_s <= kMost * beside.span_s, name_of(c), " of ", n, " on ",
                        nodes.count, " x ", nodes.ranks, ", ", std::string(name), ": ",
                        in_turn.choice.algorithm->name, " ", in_turn.span_s, ", ",
                        beside.choice.algorithm->name, " ", beside.span_s);
        }
  // Rings, chains and trees as well, if the caller names them.
  const Nodes nodes{4, 2};
  const Machine m = machine_from("lab-200mbit");
  for (const Algorithm* a : {&allreduce_ring, &broadcast_chain, &reduce_chain, &allgather_ring,
                             &reduce_scatter_ring, &allreduce_double_binary_tree,
                             &broadcast_binomial, &allreduce_rabenseifner}) {
    const auto span = [&](bool in_turn) {
      return Chosen({a->collective, 1 << 20}, nodes, in_turn, m, {a->name}).span_s;
    };
    CHECK_MESSAGE(near(span(true), span(false)), a->name);
    if (a == &allreduce_rabenseifner) continue;   // its ranks all talk across, however numbered
    const double lost = simulate(unaware(*a, nodes), 1 << 17, 8, m).span_s() /
                        simulate(make_world(*a, shape_on(*a, nodes, true)), 1 << 17, 8, m).span_s();
    CHECK_MESSAGE(lost > kMost, a->name, " in rank order takes only ", lost);
  }
}

TEST_CASE("nodes: an allreduce of 4 nodes of 2 ranks is close to what their ports allow") {
  Machine m = machine_from("lab-200mbit");
  m.ranks_per_node = 2;
  for (std::size_t n : {1u << 20, 4u << 20, 16u << 20, 64u << 20})
    for (bool in_turn : {false, true}) {
      const double bound = bound_s(m, allreduce, 8, double(n));
      const Chosen chosen({allreduce, n}, {4, 2}, in_turn, m);
      CHECK(chosen.choice.algorithm == &allreduce_multilane);
      CHECK(bound / chosen.span_s >= 0.98);
      CHECK(bound / chosen.span_s <= 1);
      const Chosen ring({allreduce, n}, {4, 2}, in_turn, m, {"ring"});
      CHECK(bound / ring.span_s < 0.87);   // 6/7: a ring of ranks passes every node twice
    }
}

TEST_CASE("nodes: segments go on inside nodes beneath the transfer of others") {
  for (const Algorithm* a :
       {&allreduce_multilane, &reduce_scatter_multilane, &allgather_multilane,
        &broadcast_hierarchical_chain, &reduce_hierarchical_chain})
    for (bool in_turn : {false, true}) {
      const Shape shape = by_messages(*a, {4, 2}, in_turn);
      CAPTURE(name_of(a->collective));
      CHECK(hidden(*a, shape, 6) > 0.87);   // all but the first or the last of the eight
      // With a window of 1 nothing is hidden if ranks wait for sums. Data that is only forwarded is
      // under way at further nodes.
      if (a == &allreduce_multilane || a == &reduce_scatter_multilane)
        CHECK(hidden(*a, shape, 1) < 0.01);
    }
}

TEST_CASE("mutants: what is done for nodes and wrong is rejected") {
  int rejected = 0;
  const auto reject = [&](const World& mutant, const std::string& what) {
    CHECK_MESSAGE(!verify(mutant), what, " goes unnoticed");
    ++rejected;
  };
  const auto sums = [](const Schedule&, const Step& step) { return step.kind == Kind::reduce; };
  for (const Algorithm* a : sending_in_nodes())
    for (bool in_turn : {false, true}) {
      const World world = make_world(*a, by_messages(*a, {2, 2}, in_turn));
      REQUIRE(verify(world));
      for (const Mutant& m : lost_edges(world)) reject(m.world, m.what);
      for (const Mutant& m : everywhere(world, "lost message", is(Kind::recv), erase))
        reject(m.world, m.what);
      for (const Mutant& m : everywhere(world, "an operand twice", sums,
                                        [](Schedule& s, std::uint32_t i) {
             s.segments[s.steps[i].first + 2] = s.segments[s.steps[i].first + 1];
           }))
        reject(m.world, m.what);
    }
  // Ranks that disagree about the nodes of ranks.
  for (const Algorithm* a : {&allreduce_ring, &broadcast_chain, &reduce_binomial,
                             &allreduce_multilane, &allgather_ring}) {
    World world = make_world(*a, by_messages(*a, {2, 2}, true));
    world[1] = make_world(*a, by_messages(*a, {2, 2}, false))[1];
    reject(world, str(a->name, " bound in two ways"));
    world[1].problem.nodes = world[0].problem.nodes;   // the schedules alone must show it
    reject(world, str(a->name, " bound in two ways that look alike"));
  }
  MESSAGE(rejected, " mutants rejected");
}
