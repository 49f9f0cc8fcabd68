// Algorithms whose positions are claimed: proofs for every order in which ranks can come, and the
// bytes that are left once the last rank has come, compared with static algorithms.
#include <doctest/doctest.h>

#include <cstdio>

#include "coll/algorithms.hpp"
#include "ir/bind.hpp"
#include "ir/load_store.hpp"
#include "simulate/traffic.hpp"
#include "verify/positions.hpp"
#include "world/mutate.hpp"
#include "world/worlds.hpp"

using namespace paceline;
using namespace paceline::test;

namespace {

std::vector<const Algorithm*> claimed() {
  std::vector<const Algorithm*> out;
  for (const Algorithm* a : registry())
    if (a->claims()) out.push_back(a);
  return out;
}

// Returns the order in which `late` comes last and the others in rank order.
std::vector<int> with_last(int ranks, int late) {
  std::vector<double> arrivals(std::size_t(ranks), 0.0);
  arrivals[std::size_t(late)] = 1;
  return claimed_order(arrivals);
}

// Returns the bytes that all ranks move once the late one has come, per byte of the message. Copies
// of data that a rank has just made count as not read again.
double moved_after(const Algorithm& a, Shape shape, int late) {
  constexpr std::size_t kCount = 1 << 16;
  if (a.claims()) shape.order = with_last(shape.ranks, late);
  Moved all;
  for (const Traffic& rank : traffic_after(make_world(a, shape), late, kCount, 4))
    all += rank.total();
  return double(all.total() - all.again) / (4.0 * kCount);
}

// moved_after() of an algorithm with the first, the middle or the last rank late; mean: over all.
struct After {
  double first = 0, middle = 0, last = 0, mean = 0;
};

After after(const Algorithm& a, int ranks) {
  const Shape shape{.collective = a.collective, .ranks = ranks};
  After out;
  for (int late = 0; late < ranks; ++late) {
    const double moved = moved_after(a, shape, late);
    if (late == 0) out.first = moved;
    if (late == ranks / 2) out.middle = moved;
    if (late == ranks - 1) out.last = moved;
    out.mean += moved / ranks;
  }
  return out;
}

bool is_static(const Algorithm& a) {
  return a.collective == Collective::allreduce && a.uses(Access::staging) &&
         !a.claims();
}

}  // namespace

TEST_CASE("claimed algorithms are proven for every order of arrival, and every root") {
  int proven = 0;
  for (const Algorithm* a : claimed())
    for (int p = 1; p <= by_length(3, 4, 5); ++p)
      for (int root = 0; root < (has_root(a->collective) ? p : 1); ++root)
        for (const std::vector<int>& order : all_orders(p))
          for (const bool in_place : {false, true})
            for (const int blocks : a->takes.blocks ? std::vector{1, 3} : std::vector{0}) {
              Shape shape{.collective = a->collective, .ranks = p, .root = root,
                          .in_place = in_place, .order = order};
              shape.cut.knobs.blocks = blocks;
              const Verdict verdict = verify(make_world(*a, shape));
              CHECK_MESSAGE(verdict, describe(*a, shape), ": ", verdict.fault);
              proven += bool(verdict);
            }
  CHECK(proven > by_length(150, 500, 500));
  MESSAGE(proven, " worlds proven");
}

// Proves the cuts that the choice allows, and that those it refuses are wrong.
TEST_CASE("claimed allreduces are proven in segments, one or two at a time") {
  const auto verdict_of = [](const Algorithm& a, const std::vector<int>& order, const Cut& cut,
                             bool in_place) {
    return verify(make_world(a, {.collective = a.collective, .ranks = int(order.size()),
                                 .in_place = in_place, .cut = cut, .order = order}));
  };
  for (const Algorithm* a : claimed())
    for (int p = 2; a->collective == Collective::allreduce && p <= by_length(3, 4, 4); ++p)
      for (const std::vector<int>& order : all_orders(p))
        for (const Cut& cut : {Cut{.segments = 3, .window = 1}, Cut{.segments = 2, .window = 2},
                               Cut{.segments = 5, .window = 2}})
          for (const bool in_place : {false, true}) {
            const Verdict verdict = verdict_of(*a, order, cut, in_place);
            CHECK_MESSAGE(verdict, a->name, ", ", cut.segments, " segments, ", cut.window,
                          " at a time: ", verdict.fault);
          }
  const Cut two{.segments = 5, .window = 2};
  CHECK_FALSE(verdict_of(reduce_arrival_chain, {1, 2, 0}, two, false));
}

TEST_CASE("a position's work does not depend on which other one is the root's") {
  for (const Algorithm* a : claimed())
    for (int p = 1; p <= 8; ++p) {
      const Shape shape{.collective = a->collective, .ranks = p};
      const Verdict verdict = check_positions(*a, shape);
      CHECK_MESSAGE(verdict, describe(*a, shape), ": ", verdict.fault);
    }
  const Shape broadcast{.collective = Collective::broadcast, .ranks = 3};   // all wait for the root
  CHECK_FALSE(check_positions(broadcast_staged, broadcast));
  const Shape reduce{.collective = Collective::reduce, .ranks = 3, .cut = {.knobs = {.blocks = 5}}};
  CHECK_FALSE(check_positions(reduce_staged, reduce));   // only the root frees slots
}

// The world as the engine runs it: every step after the one before.
World in_order(World world) {
  for (Schedule& schedule : world) schedule = paceline::in_order(std::move(schedule));
  return world;
}

TEST_CASE("mutants: a claimed schedule without a step, or a signal and its wait") {
  int rejected = 0;
  for (const Algorithm* a : claimed()) {
    Shape shape{.collective = a->collective, .ranks = 4, .root = 0};
    shape.order = claimed_order({3, 0, 2, 1});
    const World world = make_world(*a, shape);
    REQUIRE(verify(world));
    Mutants mutants = lost_signals(world);
    for (const Kind kind : {Kind::copy, Kind::reduce, Kind::wait, Kind::finish})
      for (Mutant& mutant : everywhere(world, "lost step", is(kind), erase))
        mutants.push_back(std::move(mutant));
    for (Mutant& mutant : mutants) {
      const Verdict verdict = verify(in_order(std::move(mutant.world)));
      CHECK_MESSAGE(!verdict, describe(*a, shape), ": ", mutant.what);
      rejected += !verdict;
    }
  }
  CHECK(rejected > 60);
  MESSAGE(rejected, " mutants rejected");
}

// Static algorithms are chosen before the late rank is known, so their average over the ranks
// counts; for those that follow arrival all ranks give the same.
TEST_CASE("after the last rank has come, at most 0.8 of what static algorithms leave is moved") {
  for (const int ranks : {4, 8, 16, 32}) {
    double best = 1e9;
    for (const Algorithm* a : registry())
      if (is_static(*a)) best = std::min(best, after(*a, ranks).mean);
    for (const Algorithm* a : {&allreduce_arrival_chain, &allreduce_arrival_leader}) {
      const After left = after(*a, ranks);
      CHECK(left.first == left.last);
      CHECK(left.mean == 2 * ranks + 2);   // one sum, and a copy of it on every rank
      CHECK_MESSAGE(left.mean <= 0.8 * best, a->name, ", ", ranks, " ranks: ", left.mean, " of ",
                    best);
    }
    CHECK(after(allreduce_dynamic_leader, ranks).mean == 2 * ranks + 4);
  }
}

TEST_CASE("what is left to be moved, as the page has it") {
  for (const int ranks : {4, 8, 16, 32})
    for (const Algorithm* a : registry()) {
      const bool claims = a->claims() && a->collective == Collective::allreduce;
      if (!is_static(*a) && !claims) continue;
      const After left = after(*a, ranks);
      std::printf("| %d | %s | %.2f | %.2f | %.2f | %.2f |\n", ranks, a->name, left.first,
                  left.middle, left.last, left.mean);
      CHECK(left.mean > 0);
    }
}

// The cut itself: nothing is left if the late rank moves nothing and no rank waits for it;
// everything is left if all wait for it first.
TEST_CASE("traffic after the last arrival is what waits for it") {
  const auto world = [](bool meets) {
    return by_hand({.ranks = 2, .one_node = true}, 1, [&](const Problem& pb, Builder& b) {
      const Segment slot = b.scratch(b.output());
      if (meets) meet(pb, b);
      b.copy(b.input(), slot);
    });
  };
  const auto moved = [](const World& w, int rank) {
    return traffic_after(w, 0, 10, 4)[std::size_t(rank)].total().total();
  };
  CHECK(moved(world(false), 0) == 80);
  CHECK(moved(world(false), 1) == 0);
  CHECK(moved(world(true), 1) == 80);
}
