// The simulator against closed formulas: an algorithm's cost and its simulated time agree.
#include "simulate/simulate.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <set>

#include "base/error.hpp"
#include "coll/registry.hpp"
#include "ir/layout.hpp"
#include "ir/pipeline.hpp"
#include "verify/verify.hpp"

using namespace paceline;

namespace {

constexpr std::size_t kElement = 4;
constexpr std::size_t kDividesWell = 64ull * 12252240;   // grains, by 1, 2, ..., 17

Machine machine_with(double gamma_s_per_byte) {
  Machine m;
  m.name = "test";
  m.across = {5e-6, 1e-9};
  m.gamma_s_per_byte = gamma_s_per_byte;
  return m;
}

bool close(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(a, b); }

World world_of(std::string_view collective, std::string_view name, Shape shape) {
  const Algorithm& algorithm = find_algorithm(collective_from(collective), name);
  shape.collective = algorithm.collective;
  return make_world(algorithm, shape);
}

std::size_t count_for(const Problem& problem) {
  if (problem.collective == Collective::barrier) return 0;
  return units_of(problem) == 1 ? kDividesWell : kDividesWell / 17;
}

double formula_s(const Algorithm& algorithm, const Problem& problem, const Machine& m) {
  const Cost cost = algorithm.cost(problem, {});
  const double n = double(kElement * count_for(problem)) * units_of(problem);
  return (cost.rounds + cost.near_rounds) * m.across.alpha_s +   // all ranks are equally near
         ((cost.volume + cost.near_volume) * m.across.beta_s_per_byte +
          cost.reduced * m.gamma_s_per_byte) * n;
}

// Algorithms whose time is below the formula: trees in which a rank combines more than once, if p
// is no power of two. A subtree is then smaller than its place allows, its message comes while the
// rank still combines the one before, and part of gamma is hidden. Receives fused with their
// combination hide nothing, because the next receive waits for it. The formula is an upper bound
// here, and exact without gamma.
const std::set<std::string> kHidesGamma{
    "allreduce/recursive_doubling", "allreduce/binomial", "reduce/binomial",
    "reduce/scatter_gather", "reduce_scatter/circulant", "reduce_scatter/recursive_halving"};

// Algorithms whose rounds are not in step, with the greatest factor above the formula. Combinations
// end at different times on different ranks, or a block travels on before its round and takes the
// ports that others still need for an earlier one. The time is never below that of the messages
// alone; without gamma the formula is exact, except for algorithms with blocks. Those that add all
// at once are out of step only beyond 16 ranks, where sums are formed in groups; in a k-nomial tree
// the next child sends while one is added; in ring order an owner adds the values that have come.
const std::map<std::string, double> kOutOfStep{
    {"allreduce/circulant", 1.2}, {"allreduce/rabenseifner", 1.1}, {"allreduce/direct", 1.2},
    {"allreduce/tail_direct", 1.2}, {"reduce/tail_direct", 1},
    {"allreduce/sorted_chain", 1}, {"allreduce/tail_as_ring", 1.2},
    {"reduce_scatter/direct", 1}, {"broadcast/circulant", 1.3},    {"reduce/circulant", 1.25},
    {"allreduce/recursive_multiplying", 1.15}, {"reduce/k_nomial", 1},
    {"allreduce/dual_root", 1.15}, {"allreduce/double_binary_tree", 1}, {"allreduce/bruck", 1},
    {"reduce/bruck", 1},          {"reduce_scatter/bruck", 1},     {"reduce/direct", 1},
    {"reduce/gather", 1},         {"broadcast/scatter_circulant", 1.5}};
// Factor by which the formula may be too high: it is an upper bound for trees that are not full.
const std::map<std::string, double> kBlocks{
    {"broadcast/circulant", 1e-9}, {"reduce/circulant", 1e-9}, {"allreduce/dual_root", 0.1},
    {"allreduce/sorted_chain", 0.5},   // two ranks send both ways at once
    {"broadcast/scatter_circulant", 1e-9}, {"allreduce/double_binary_tree", 0.45}};

std::string full_name(const Algorithm& algorithm) {
  return std::string(name_of(algorithm.collective)) + "/" + algorithm.name;
}

// The schedule without the steps that `drops` names, as if the author had forgotten them.
template <class Drops>
Schedule without(const Schedule& schedule, Drops drops) {
  Schedule out = schedule;
  out.steps.clear();
  std::vector<int> now(schedule.steps.size(), -1);
  for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
    if (drops(i)) continue;
    now[i] = static_cast<int>(out.steps.size());
    out.steps.push_back(schedule.steps[i]);
  }
  std::vector<Edge> edges;
  for (const auto& [from, to] : edges_of(schedule))
    if (now[from] >= 0 && now[to] >= 0)
      edges.emplace_back(std::uint32_t(now[from]), std::uint32_t(now[to]));
  set_edges(out, std::move(edges));
  return out;
}

bool talks(const Step& step) { return step.kind == Kind::send || step.kind == Kind::recv; }

// Checks a trace against the rules of simulate.hpp, from the schedules alone; empty: nothing found.
std::string broken_rule(const World& world, const Trace& trace) {
  std::map<std::pair<int, int>, std::pair<double, double>> when;   // rank, step -> begin, end
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> busy;   // rank, resource
  std::size_t steps = 0;
  for (const Schedule& s : world) steps += s.steps.size();
  for (const Event& e : trace.events) {
    const auto [at, is_new] = when.try_emplace({e.rank, e.step}, e.begin_s, e.end_s);
    if (!is_new) at->second.second = e.end_s;   // the combination of a recv_reduce
    if (e.begin_s < trace.arrival_s[std::size_t(e.rank)]) return "a step before its rank arrived";
    if (e.end_s > trace.exit_s[std::size_t(e.rank)]) return "a step after its rank left";
    const bool local = e.activity == Activity::reduce || e.activity == Activity::copy;
    if (e.activity == Activity::send || e.activity == Activity::recv || local)
      busy[{e.rank, local ? 2 : e.activity == Activity::send}].emplace_back(e.begin_s, e.end_s);
  }
  if (when.size() != steps) return "a step without an event";
  for (auto& [resource, intervals] : busy) {
    std::sort(intervals.begin(), intervals.end());
    for (std::size_t i = 1; i < intervals.size(); ++i)
      if (intervals[i].first < intervals[i - 1].second * (1 - 1e-9)) return "two at one port";
  }
  for (int rank = 0; rank < trace.ranks; ++rank)
    for (const auto& [from, to] : edges_of(world[std::size_t(rank)]))
      if (when[{rank, int(to)}].first < when[{rank, int(from)}].second) return "an edge ignored";
  return "";
}

}  // namespace

TEST_CASE("simulate: what is in flight keeps no port") {
  Machine m = machine_with(0);
  m.across.latency_s = 4e-6;
  const double part_s = kElement * 1000 * m.across.beta_s_per_byte;
  Shape shape{.ranks = 3};
  shape.cut.segments = shape.cut.window = 4;
  const World world = world_of("broadcast", "chain", shape);
  const auto span = [&] { return simulate(world, 4000, kElement, m).span_s(); };
  const double hop_s = m.across.alpha_s + part_s;
  CHECK(close(span(), 2 * hop_s + 3 * (hop_s - m.across.latency_s)));
  m.across.latency_s = 0;
  CHECK(close(span(), 5 * hop_s));
}

TEST_CASE("simulate: long messages may be slower than short ones") {
  Machine m = machine_with(0);
  m.across.short_bytes = 4000;
  m.across.long_beta_s_per_byte = 3e-9;
  const World world = world_of("broadcast", "chain", {.ranks = 2});
  const auto span = [&](std::size_t count) { return simulate(world, count, kElement, m).span_s(); };
  CHECK(close(span(1000), m.across.alpha_s + 4000 * 1e-9));
  CHECK(close(span(1001), m.across.alpha_s + 4004 * 3e-9));
}

TEST_CASE("simulate: every algorithm takes what its cost says") {
  std::set<std::string> hidden, out_of_step;
  for (const Algorithm* a : registry())
    for (int p = 2; p <= 17; ++p)
      for (const double gamma : {0.0, 1e-10, 3e-9})
        for (const bool fused : {false, true}) {
          const Shape shape{.collective = a->collective, .ranks = p, .fused = fused};
          if (a->by_nodes() || why_not(*a, problem_of(*a, shape, 0))) continue;   // mixed_test.cpp
          const Problem problem{.collective = a->collective, .ranks = p};
          const Machine machine = machine_with(gamma);
          const double formula = formula_s(*a, problem, machine);
          const World world = make_world(*a, shape);
          const double span = simulate(world, count_for(problem), kElement, machine).span_s();
          CAPTURE(str(describe(*a, shape), ", gamma ", gamma));
          if (!fused && gamma > 0 && !std::has_single_bit(unsigned(p)) &&
              kHidesGamma.contains(full_name(*a))) {
            CHECK(span <= formula * (1 + 1e-9));
            CHECK(span >= formula_s(*a, problem, machine_with(0)));
            if (!close(span, formula)) hidden.insert(full_name(*a));
          } else if (kOutOfStep.contains(full_name(*a)) &&
                     (gamma > 0 || kBlocks.contains(full_name(*a)))) {
            CHECK(span <= formula * kOutOfStep.at(full_name(*a)) * (1 + 1e-9));
            const auto found = kBlocks.find(full_name(*a));
            const double all_but = found != kBlocks.end() ? found->second : 1e-9;
            CHECK(span >= formula_s(*a, problem, machine_with(0)) * (1 - all_but));
            if (!close(span, formula)) out_of_step.insert(full_name(*a));
          } else {
            CHECK(span == doctest::Approx(formula).epsilon(1e-9));
          }
        }
  CHECK(hidden == kHidesGamma);   // no exception without a reason
  CHECK(out_of_step.size() == kOutOfStep.size());
}

TEST_CASE("simulate: the root does not matter, one rank takes no time") {
  const Machine m = machine_with(1e-10);
  for (const Algorithm* a : registry()) {
    CAPTURE(full_name(*a));
    CHECK(simulate(make_world(*a, {.collective = a->collective}), 100, kElement, m).span_s() == 0);
    if (!has_root(a->collective)) continue;   // of claimed positions, the last one's root has all
    if (full_name(*a) == "reduce/tail_direct") continue;   // another order of messages
    const auto span = [&](int root) {
      const Shape shape{.collective = a->collective, .ranks = 11, .root = root};
      return simulate(make_world(*a, shape), 1100, kElement, m).span_s();
    };
    for (int root = 1; root < (a->claims() ? 10 : 11); ++root) CHECK(close(span(root), span(0)));
  }
}

TEST_CASE("simulate: a pipelined chain takes p - 2 + B rounds") {
  const Machine m = machine_with(0);
  const double n = double(kElement * kDividesWell);
  for (int p = 2; p <= 17; ++p)
    for (const int segments : {1, 2, 3, 5, 16}) {
      const double round = m.across.time_s(n / segments);
      const auto span = [&](int window) {
        const Shape shape{.ranks = p, .cut = {.segments = segments, .window = window}};
        return simulate(world_of("broadcast", "chain", shape), kDividesWell, kElement, m).span_s();
      };
      CHECK(close(span(2), (p - 2 + segments) * round));
      CHECK(close(span(16), (p - 2 + segments) * round));
      // Without a window a rank between others either receives or sends.
      CHECK(close(span(1), (p > 2 ? p - 1 + 2 * (segments - 1) : segments) * round));
    }
}

TEST_CASE("simulate: a late rank delays what needs it, and nothing else") {
  const Machine m = machine_with(1e-10);
  const double round = m.across.time_s(4e6), late_s = 0.25;
  const auto with_late = [&](const World& world, int rank, double by) {
    std::vector<double> arrivals(world.size());
    arrivals[std::size_t(rank)] = by;
    const Trace trace = simulate(world, 1000000, kElement, m, arrivals);
    CHECK(trace.arrival_s[std::size_t(rank)] == by);
    CHECK(broken_rule(world, trace) == "");
    return trace.span_s();
  };
  for (const char* name : {"recursive_doubling", "ring"}) {   // the late one has all rounds to do
    const World world = world_of("allreduce", name, {.ranks = 8});
    const double punctual = with_late(world, 0, 0);
    for (int rank = 0; rank < 8; ++rank)
      CHECK(close(with_late(world, rank, late_s), late_s + punctual));
  }
  const World chain = world_of("broadcast", "chain", {.ranks = 8});
  for (int rank = 0; rank < 8; ++rank) {
    if (rank > 0) CHECK(close(with_late(chain, rank, (rank - 1) * round), 7 * round));   // in time
    CHECK(close(with_late(chain, rank, late_s), late_s + (8 - std::max(rank, 1)) * round));
  }
}

TEST_CASE("simulate: the ranks of a node share its port and nothing inside") {
  Problem problem;
  problem.collective = Collective::broadcast;
  problem.ranks = 4;
  World world;   // 0 and 1 send to 2 and 3, at the same time where the ports allow
  for (problem.rank = 0; problem.rank < 4; ++problem.rank) {
    Builder b(problem, 1);
    if (problem.rank < 2) b.send(problem.rank + 2, {b.output()});
    else b.recv(problem.rank - 2, {b.output()});
    world.push_back(std::move(b).take("test"));
  }
  Machine m = machine_with(0);
  m.inside = {1e-6, 1e-10};
  const auto span = [&](int ranks_per_node) {
    m.ranks_per_node = ranks_per_node;
    return simulate(world, 1000, kElement, m).span_s();
  };
  CHECK(close(span(1), m.across.time_s(4000)));
  CHECK(close(span(2), 2 * m.across.time_s(4000)));
  CHECK(close(span(3), m.across.time_s(4000)));   // 0 and 2 are neighbours
  CHECK(close(span(4), m.inside.time_s(4000)));
}

TEST_CASE("simulate: every combination of a reduce is paid for, and copies where they cost") {
  Problem problem;
  Builder b(problem, 1);
  const Segment a = b.scratch(b.output());
  b.copy(b.input(), a);
  b.reduce({a, b.input(), a, b.input()}, b.output());
  b.finish(b.output());
  Machine m = machine_with(2e-9);
  const World world{std::move(b).take("test")};
  CHECK(close(simulate(world, 1000, kElement, m).span_s(), 3 * 4000 * 2e-9));
  m.copy_s_per_byte = 1e-9;
  const Trace trace = simulate(world, 1000, kElement, m);
  CHECK(close(trace.span_s(), 3 * 4000 * 2e-9 + 4000 * 1e-9));
  CHECK(trace.events.size() == 3);
}

TEST_CASE("simulate: traces keep the rules, are complete and repeat") {
  for (const Algorithm* a : registry())
    for (const int p : {2, 3, 6, 9})
      for (const int segments : {1, 5})
        for (const bool fused : {false, true}) {
          const Shape shape{.collective = a->collective, .ranks = p, .fused = fused,
                            .cut = {.segments = segments, .window = 3}};
          CAPTURE(describe(*a, shape));
          const World world = make_world(*a, shape);
          std::vector<double> arrivals;
          for (int rank = 0; rank < p; ++rank) arrivals.push_back(1e-5 * (rank * 7 % 5));
          Machine m = machine_from("edr-100g");
          m.copy_s_per_byte = 1e-11;
          const Trace trace = simulate(world, 1237, kElement, m, arrivals);
          CHECK(broken_rule(world, trace) == "");
          const Trace again = simulate(world, 1237, kElement, m, arrivals);
          REQUIRE(again.events.size() == trace.events.size());
          for (std::size_t i = 0; i < trace.events.size(); ++i)
            CHECK(std::tie(again.events[i].rank, again.events[i].end_s) ==
                  std::tie(trace.events[i].rank, trace.events[i].end_s));
        }
}

TEST_CASE("simulate: mutants are noticed") {
  const Machine m = machine_with(3e-9);
  const Algorithm& ring = find_algorithm(Collective::allreduce, "ring");
  Problem problem;
  problem.ranks = 6;
  const World right = make_world(ring, {.ranks = 6});
  const auto agrees = [&](const World& world) {
    const double span = simulate(world, kDividesWell, kElement, m).span_s();
    const double formula = formula_s(ring, problem, m);
    return close(span, formula) ? 0 : span < formula ? -1 : 1;
  };
  REQUIRE(agrees(right) == 0);
  World lost_round, lost_edges, lost_receive = right, blocking;
  for (const Schedule& s : right) {
    int sends = 0, receives = 0;
    for (const Step& step : s.steps) (step.kind == Kind::send ? sends : receives) += talks(step);
    int sent = 0, received = 0;
    lost_round.push_back(without(s, [&](std::size_t i) {
      if (s.steps[i].kind == Kind::send) return ++sent == sends;
      return s.steps[i].kind == Kind::recv && ++received == receives;
    }));
    lost_edges.push_back(s);
    set_edges(lost_edges.back(), {});
    blocking.push_back(s);   // one after the other
    std::vector<Edge> edges;
    for (std::uint32_t i = 1; i < s.steps.size(); ++i) edges.emplace_back(i - 1, i);
    set_edges(blocking.back(), std::move(edges));
  }
  CHECK(agrees(lost_round) == -1);
  CHECK(agrees(lost_edges) == -1);
  CHECK(broken_rule(right, simulate(lost_edges, 6000, kElement, m)) == "an edge ignored");
  CHECK_THROWS_AS(agrees(blocking), Error);   // every rank sends before it receives: a deadlock
  lost_receive[2] =
      without(right[2], [&](std::size_t i) { return right[2].steps[i].kind == Kind::recv; });
  CHECK_THROWS_AS(agrees(lost_receive), Error);

  Trace trace = simulate(right, 6000, kElement, m);
  trace.events.pop_back();
  CHECK(broken_rule(right, trace) == "a step without an event");
  trace = simulate(right, 6000, kElement, m);
  for (Event& e : trace.events) e.begin_s = 0;
  CHECK(broken_rule(right, trace) == "two at one port");
}

TEST_CASE("simulate: what does not fit together is refused") {
  const World world = world_of("allreduce", "ring", {.ranks = 3});
  CHECK_THROWS_AS(simulate({}, 1, kElement, machine_with(0)), Error);
  CHECK_THROWS_AS(simulate(world, 1, kElement, machine_with(0), {0.0, 0.0}), Error);
  CHECK(close(simulate(world, 0, kElement, machine_with(0)).span_s(), 4 * 5e-6));   // no bytes
}

// The seed on pipelined MPI allreduce (section 5.3) finds that a third of a ring's time is
// arithmetic and that splitting the message hides most of it. With -s this case prints the table of
// docs/design/0005-simulator.md.
TEST_CASE("simulate: pipelining hides the arithmetic of a ring behind the wire") {
  const double n = 64.0 * 1024 * 1024;
  for (const int p : {8, 9}) {
    Machine m = machine_from("edr-100g");
    const double wire = 2 * (p - 1) * m.across.time_s(n / p);
    m.gamma_s_per_byte = 0.38 / 0.62 * wire / ((p - 1) * n / p);
    const auto fraction = [&](int segments, int window) {
      const World world =
          world_of("allreduce", "ring", {.ranks = p, .cut = {segments, window}});
      const double span = simulate(world, std::size_t(n) / kElement, kElement, m).span_s();
      return bound_s(m, Collective::allreduce, p, n) / span;
    };
    const double alone = fraction(1, 1);
    CHECK(alone >= 0.59);
    CHECK(alone <= 0.63);
    double best = 0;
    for (const int segments : {2, 4, 8, 12, 16, 32, 64})
      for (const int window : {1, 2, 3, 4, 6, 8}) {
        if (window > segments) continue;
        const double reached = fraction(segments, window);
        CAPTURE(p);
        CAPTURE(segments);
        CAPTURE(window);
        CHECK(reached < 1);
        if (window == 1) CHECK(reached < alone);   // alpha alone grows
        if (segments == 8 && window == 6) CHECK(reached >= 0.95);
        best = std::max(best, reached);
      }
    CHECK(best >= 0.95);
  }
}
