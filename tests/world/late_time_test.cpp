// Model time from the last rank's entry to the end: compared with the bound, with algorithms that
// do not know the late ranks, and with the choice's estimate. docs/design/0041 has the figures.
#include <doctest/doctest.h>

#include <algorithm>

#include "base/error.hpp"
#include "coll/algorithms.hpp"
#include "coll/registry.hpp"
#include "runtime/late_prices.hpp"
#include "simulate/simulate.hpp"
#include "tune/choose.hpp"
#include "tune/late.hpp"
#include "world/worlds.hpp"

namespace paceline {
namespace {

constexpr std::size_t kCount = 1u << 20, kBytes = 4 * kCount;
constexpr double kWire = 1;   // n beta, in seconds

// A message start takes this part of n beta; a sum takes no time.
Machine machine_with(double alpha) {
  Machine m = machine_from("edr-100g");
  m.across = Link{};
  m.across.alpha_s = alpha * kWire;
  m.across.beta_s_per_byte = kWire / kBytes;
  m.inside = m.across;
  m.gamma_s_per_byte = m.copy_s_per_byte = 0;
  m.ranks_per_node = 1;
  return m;
}

using Late = std::vector<int>;

struct Pattern {
  Collective collective;
  int ranks;
  Late predicted;
  std::vector<double> arrivals;
  double alpha = 1e-4;
  std::vector<int> nodes = {};   // of the ranks, inside which messages take a twentieth
};

std::vector<double> arriving(int ranks, const Late& late, double after) {
  std::vector<double> at(static_cast<std::size_t>(ranks));
  for (int rank : late) at[static_cast<std::size_t>(rank)] = after;
  return at;
}

Machine machine_of(const Pattern& x) {
  Machine m = machine_with(x.alpha);
  if (x.nodes.empty()) return m;
  m.ranks_per_node = 2;
  m.inside.alpha_s /= 20;
  m.inside.beta_s_per_byte /= 20;
  return m;
}

Problem problem_of(const Pattern& x) {
  Problem p{.collective = x.collective, .ranks = x.ranks};
  p.late = x.predicted;
  p.nodes = x.nodes;
  return p;
}

ChoiceInputs inputs_of(const Pattern& x) { return {.bytes = kBytes, .machine = machine_of(x)}; }

// Returns the choice without a prediction.
Choice usual_of(const Pattern& x) {
  Problem p = problem_of(x);
  p.late.clear();
  return choose(p, inputs_of(x));
}

// Seconds from the last entry to the last exit.
double left(const Algorithm& a, const Pattern& x, const Cut& cut) {
  Shape shape{.collective = a.collective, .ranks = x.ranks, .fused = true, .cut = cut};
  if (a.expects_late()) shape.late = x.predicted;
  shape.nodes = x.nodes;
  const Trace trace = simulate(make_world(a, shape), kCount, 4, machine_of(x), x.arrivals);
  return *std::max_element(trace.exit_s.begin(), trace.exit_s.end()) -
         *std::max_element(trace.arrival_s.begin(), trace.arrival_s.end());
}

// The form for late ranks that the model takes. Reduces that are stable begin in rank order where
// their operation is not commutative.
LateForm form_of(const Pattern& x, bool fast) {
  Problem p = problem_of(x);
  p.fast = fast;
  Choice usual = usual_of(x);
  if (p.collective == Collective::reduce) usual.algorithm = &reduce_direct;
  const auto form = form_for_late(p, inputs_of(x), usual);
  REQUIRE(form);
  return *form;
}

double left_by_form(const Pattern& x, bool fast) {
  const LateForm form = form_of(x, fast);
  return left(*form.algorithm, x, form.cut);
}

double left_static(const Pattern& x) {
  const Choice usual = usual_of(x);
  return left(*usual.algorithm, x, usual.cut);
}

TEST_CASE("late: one rank late by a message's time leaves little more than that time") {
  for (int p : {4, 8, 16, 32})
    for (int rank : {0, p / 2, p - 1}) {
      const Pattern x{Collective::allreduce, p, {rank}, arriving(p, {rank}, 1.5)};
      CAPTURE(p);
      CAPTURE(rank);
      CHECK(left_by_form(x, true) <= (p <= 8 ? 1.12 : p <= 16 ? 1.14 : 1.20));
      CHECK(left_by_form(x, false) <= 1.25);
      CHECK(left_static(x) >= 1.45);   // what there is to gain
    }
}

// Times are in units of the message's time at a node's port.
TEST_CASE("late: of ranks that share nodes one late rank, or a late node, leaves as little") {
  for (int nodes : {4, 8})
    for (const Late& late : {Late{3}, Late{0}, Late{2, 3}}) {
      Pattern x{Collective::allreduce, 2 * nodes, late, arriving(2 * nodes, late, 2)};
      for (int rank = 0; rank < x.ranks; ++rank) x.nodes.push_back(rank / 2);
      CAPTURE(nodes);
      CAPTURE(late.size());
      CHECK(left_by_form(x, true) <= 1.30);
      CHECK(left_by_form(x, false) <= 1.40);
      CHECK(left_static(x) >= 1.50);
      for (bool fast : {true, false})
        CHECK(form_of(x, fast).residual_s ==
              doctest::Approx(left_by_form(x, fast)).epsilon(0.15));
      x.arrivals = arriving(x.ranks, {1}, 0);   // a wrong guess
      CHECK(left_by_form(x, true) <= 1.35 * left_static(x));
    }
}

TEST_CASE("late: several ranks late together stay within a quarter of the bound") {
  for (int p : {8, 16, 32})
    for (int k = 2; k <= p / 4; k *= 2) {
      Late late;
      for (int i = 0; i < k; ++i) late.push_back((3 + 5 * i) % p);
      const Pattern x{Collective::allreduce, p, late, arriving(p, late, 1.5)};
      CAPTURE(p);
      CAPTURE(k);
      const double bound = std::max(1.0, double(p - 1 + k) / p);
      for (bool fast : {true, false}) CHECK(left_by_form(x, fast) <= 1.40 * bound);
      CHECK(left_by_form(x, true) < left_static(x));
    }
}

TEST_CASE("late: a wrong guess costs at most a quarter more than none") {
  for (int p : {8, 16})
    for (double after : {0.0, 1.5}) {   // no rank late; another rank late
      const Pattern x{Collective::allreduce, p, {p - 1}, arriving(p, {1}, after)};
      CAPTURE(p);
      CAPTURE(after);
      CHECK(left_by_form(x, false) <= 1.25 * left_static(x));
    }
}

TEST_CASE("late: the model says what the simulator finds, and from where on it pays") {
  for (int p : {8, 16, 32})
    for (int k : {1, 2}) {
      Late late;
      for (int i = 0; i < k; ++i) late.push_back(p - 1 - 2 * i);
      Pattern x{Collective::allreduce, p, late, arriving(p, late, 2)};
      const LateForm form = form_of(x, false);
      CAPTURE(p);
      CAPTURE(k);
      const double found = left(*form.algorithm, x, form.cut), none = left_static(x);
      CHECK(form.residual_s == doctest::Approx(found).epsilon(0.12));
      const double gap = form.gap_s(none);
      CHECK(gap > 0.1);
      x.arrivals = arriving(p, late, gap + 0.25);
      CHECK(left(*form.algorithm, x, form.cut) < left_static(x));
      x.arrivals = arriving(p, late, std::max(0.0, gap - 0.35));
      CHECK(left(*form.algorithm, x, form.cut) > left_static(x) - 0.02);
    }
}

// Else a call would be taken for one that names late ranks, and its time for theirs.
TEST_CASE("late: ranks have a price just where the call would take another form for them") {
  int named = 0, unnamed = 0;
  for (int p : {4, 5, 8, 16})
    for (double alpha = 1e-4; alpha < 1; alpha *= 1.02) {
      Pattern x{Collective::allreduce, p, {p / 2}, {}, alpha};
      const Choice usual = usual_of(x), late = choose(problem_of(x), inputs_of(x));
      const CallPrices prices = prices_for_late(problem_of(x), inputs_of(x), usual);
      const bool is_named = late.algorithm->expects_late();
      CAPTURE(p);
      CAPTURE(alpha);
      CHECK(prices.naming({p / 2}).has_value() == is_named);
      ++(is_named ? named : unnamed);
    }
  CHECK(named > 0);
  CHECK(unnamed > 0);
}

TEST_CASE("late: reduce and broadcast leave a message's time where the root is there") {
  for (Collective c : {Collective::reduce, Collective::broadcast})
    for (int p : {8, 16})
      for (int k : {1, 2}) {
        Late late;
        for (int i = 0; i < k; ++i) late.push_back(p / 2 + i);
        const Pattern x{c, p, late, arriving(p, late, 2.5)};
        CAPTURE(name_of(c));
        CAPTURE(p);
        CAPTURE(k);
        CHECK(left_by_form(x, true) <= (c == Collective::broadcast || k == 1 ? 1.12 : 1.20));
        CHECK(left_by_form(x, false) <= 1.25);
      }
}

TEST_CASE("late: broadcast does not keep those who are there waiting for those who are not") {
  const Pattern x{Collective::broadcast, 8, {3}, arriving(8, {3}, 50)};
  const LateForm form = form_of(x, false);
  const auto others_end = [&](const Algorithm& a, const Cut& cut) {
    Shape shape{.collective = a.collective, .ranks = 8, .cut = cut};
    if (a.expects_late()) shape.late = x.predicted;
    const Trace t = simulate(make_world(a, shape), kCount, 4, machine_with(x.alpha), x.arrivals);
    std::vector<double> ends = t.exit_s;
    std::sort(ends.begin(), ends.end());
    return ends[5];   // the last but one waits until it has served the late rank
  };
  CHECK(others_end(*form.algorithm, form.cut) < 2);
  CHECK(others_end(broadcast_chain, {}) > 50);   // the ranks behind the late one
}

TEST_CASE("late: reduce_scatter, allgather and alltoall have nothing left to gain") {
  for (Collective c : {Collective::reduce_scatter, Collective::allgather, Collective::alltoall})
    for (int p : {4, 8, 16}) {
      const char* name = c == Collective::reduce_scatter ? "direct"
                         : c == Collective::allgather    ? "linear"
                                                         : "pairwise";
      Shape shape{.collective = c, .ranks = p};
      const Trace t = simulate(make_world(find_algorithm(c, name), shape), kCount / std::size_t(p),
                               4, machine_with(1e-4), arriving(p, {p / 2}, 1.5));
      const double end = *std::max_element(t.exit_s.begin(), t.exit_s.end()) - 1.5;
      CHECK(end <= 1.02 * double(p - 1) / p);   // bytes that the late rank itself sends or receives
      const ChoiceInputs now{.bytes = kBytes, .machine = machine_with(1e-4)};
      const Choice usual = choose({.collective = c, .ranks = p}, now);
      CHECK(!form_for_late({.collective = c, .ranks = p, .late = {p / 2}, .fast = true}, now,
                           usual));
    }
}

TEST_CASE("late: who is asked for by name is cut as where it is chosen") {
  const ChoiceInputs now{.bytes = kBytes, .machine = machine_with(1e-4)};
  for (const char* name : {"tail_direct", "tail_as_ring", "sorted_chain"}) {
    const Problem p{.collective = Collective::allreduce, .ranks = 8, .late = {5}, .fast = true};
    const Choice choice = choose(p, now, {.algorithm = name});
    const Pattern x{p.collective, p.ranks, p.late, arriving(p.ranks, p.late, 1.5)};
    CAPTURE(name);
    CHECK(left(*choice.algorithm, x, choice.cut) <= 1.25);
    CHECK(choose(p, now, {.algorithm = name, .cut = {.knobs = {.blocks = 3}}}).cut.knobs.blocks ==
          3);
  }
}

TEST_CASE("late: the choice goes over to a form where it pays and bits allow it") {
  const ChoiceInputs now{.bytes = kBytes, .machine = machine_with(1e-4)};
  Problem p{.collective = Collective::allreduce, .ranks = 8, .late = {5}};
  const Choice stable = choose(p, now);
  CHECK(std::string_view(stable.algorithm->name) == "tail_as_ring");
  CHECK(stable.cut.knobs.blocks * stable.cut.segments > 1);
  p.commutative = false;
  CHECK(std::string_view(choose(p, now).algorithm->name) == "tail_direct");
  p.commutative = p.fast = true;
  CHECK(choose(p, now).algorithm->expects_late());
  p.late = {1, 3, 5};   // more than a quarter
  CHECK(!choose(p, now).algorithm->expects_late());
  p.late = {5};
  CHECK(!choose(p, {.bytes = 256, .machine = machine_from("edr-100g")}).algorithm->expects_late());
  p.late = {8};
  CHECK_THROWS_AS(choose(p, now), Error);
}

// Checks the choice for a call with rank 1 late, on nodes of a machine, and the time that it
// leaves.
void check_choice_on(Machine machine, int ranks_per_node, std::size_t bytes, bool fast) {
  const int ranks = 4 * ranks_per_node;
  machine.ranks_per_node = ranks_per_node;
  Problem p{.collective = Collective::allreduce, .ranks = ranks, .node_staging = true,
            .fast = fast};
  for (int rank = 0; rank < ranks; ++rank) p.nodes.push_back(rank / ranks_per_node);
  const ChoiceInputs now{.bytes = bytes, .machine = machine, .stage_bytes = 2u << 20};
  const Choice usual = choose(p, now);
  p.late = {1};
  const Choice then = choose(p, now);
  if (!then.algorithm->expects_late()) return;
  const auto left_by = [&](const Choice& choice) {
    Shape shape{.collective = p.collective, .ranks = ranks, .fused = true, .cut = choice.cut};
    if (choice.algorithm->expects_late()) shape.late = p.late;
    shape.nodes = p.nodes;
    const Trace trace = simulate(make_world(*choice.algorithm, shape), bytes / 4, 4, machine,
                                 arriving(ranks, p.late, 10));
    return *std::max_element(trace.exit_s.begin(), trace.exit_s.end()) - 10;
  };
  const double late_s = left_by(then), usual_s = left_by(usual);
  const std::string what = str(machine.name, ", 4 x ", ranks_per_node, ", ", bytes, " bytes: ",
                               then.algorithm->name, ", not ", usual.algorithm->name);
  CAPTURE(what);
  CHECK(late_s <= 1.02 * usual_s);
}

TEST_CASE("late: on nodes no form is chosen that leaves more than what is usual") {
  for (const char* machine : {"edr-100g", "ethernet-10g", "lab-200mbit", "shm"})
    for (int ranks_per_node : {2, 4})
      for (std::size_t bytes = 4096; bytes <= 16u << 20; bytes *= 8)
        for (bool fast : {false, true})
          check_choice_on(machine_from(machine), ranks_per_node, bytes, fast);
}

}  // namespace
}  // namespace paceline
