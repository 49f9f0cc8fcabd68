// Order of the steps on a rank's device: ranks that execute them one after the other, waiting at
// each receive, never deadlock.
#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>

#include "base/str.hpp"
#include "engine/enqueued.hpp"
#include "ir/lower.hpp"
#include "world/cases.hpp"
#include "world/worlds.hpp"

namespace paceline {
namespace {

using test::Case;
using Order = std::vector<std::uint32_t>;

// All schedules that a rank may run: out of place and in place, unless the algorithm rejects one.
struct World {
  std::deque<Schedule> schedules;   // with stable addresses
  std::vector<RankSchedule> all;
  std::vector<std::vector<std::size_t>> of;   // by rank

  explicit World(const Case& c) : of(std::size_t(c.ranks)) {
    const Algorithm& algorithm = find_algorithm(c.collective, c.algorithm);
    for (int rank = 0; rank < c.ranks; ++rank)
      for (bool in_place : {false, true}) {
        const Problem problem{.collective = c.collective, .ranks = c.ranks, .rank = rank,
                              .root = c.root, .in_place = in_place, .uneven = c.uneven};
        if (algorithm.rejects(problem)) continue;
        of[std::size_t(rank)].push_back(all.size());
        schedules.push_back(lower(algorithm, problem,
                                  {.segments = c.segments, .window = c.window, .knobs = c.knobs},
                                  Reader::device));
        all.push_back({rank, &schedules.back()});
      }
  }

  const Schedule& at(std::size_t i) const { return *all[i].schedule; }
  // Returns one schedule for each rank: bit r of the mask chooses that of rank r.
  std::vector<std::size_t> chosen(unsigned mask) const {
    std::vector<std::size_t> found;
    for (std::size_t r = 0; r < of.size(); ++r)
      found.push_back(of[r][(mask >> r & 1) % of[r].size()]);
    return found;
  }
  std::vector<Order> orders() const {
    std::vector<Order> found;
    for (std::size_t i = 0; i < all.size(); ++i) found.push_back(steps_in_order(all, i));
    return found;
  }
};

// Returns the ranks that are stuck; empty: none. Sends never wait.
std::string stuck(const World& world, const std::vector<Order>& orders, unsigned mask) {
  std::map<std::tuple<int, int, int, bool, int>, int> sent;   // from, to, lane, is a signal, number
  const std::vector<std::size_t> ways = world.chosen(mask);
  std::vector<std::size_t> next(ways.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t r = 0; r < ways.size(); ++r)
      while (next[r] < orders[ways[r]].size()) {
        const Step& step = world.at(ways[r]).steps[orders[ways[r]][next[r]]];
        const int me = static_cast<int>(r);
        const bool signals = step.kind == Kind::signal || step.kind == Kind::wait;
        if (step.kind == Kind::send || step.kind == Kind::signal)
          ++sent[{me, step.peer, step.lane, signals, step.seq}];
        if (step.kind == Kind::recv || step.kind == Kind::wait)
          if (!sent.contains({step.peer, me, step.lane, signals, step.seq})) break;
        ++next[r];
        moved = true;
      }
  }
  for (std::size_t r = 0; r < ways.size(); ++r)
    if (next[r] < orders[ways[r]].size())
      return str("rank ", r, " waits at ", next[r], " of ", orders[ways[r]].size(),
                 " steps, in place by ", mask);
  return "";
}

// Returns the steps out of place; empty if each comes once, after those that it depends on.
std::string misplaced(const Schedule& schedule, const Order& order) {
  std::vector<std::size_t> place(schedule.steps.size(), order.size());
  for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  if (order.size() != place.size() || std::ranges::count(place, order.size()) > 0)
    return str(order.size(), " steps of ", place.size());
  for (const auto& [from, to] : edges_of(schedule))
    if (place[from] >= place[to]) return str("step ", to, " comes before step ", from);
  return "";
}

TEST_CASE("device order: every step after its own, and no rank waits for one that waits for it") {
  for (int p = 1; p <= test::by_length(4, 6, 9); ++p)
    test::for_each_case(p, true, [&](const Case& c) {
      if (find_algorithm(c.collective, c.algorithm).is_load_store()) return;
      if (c.in_place) return;   // both ways at once
      const World world(c);
      const auto orders = world.orders();
      for (std::size_t i = 0; i < orders.size(); ++i) {
        const std::string bad = misplaced(world.at(i), orders[i]);
        CHECK_MESSAGE(bad.empty(), c.name(), ": ", bad);
      }
      for (unsigned mask : {0u, ~0u, 1u, 0x55555555u, 1u << c.root}) {
        const std::string bad = stuck(world, orders, mask);
        CHECK_MESSAGE(bad.empty(), c.name(), ": ", bad);
      }
    });
}

TEST_CASE("device order: a receive that one rank takes too early is found") {
  const World world({Collective::allreduce, "ring", 3, 30, 0, true});
  auto orders = world.orders();
  for (std::size_t i = 0; i < orders.size(); ++i)   // all of them before what the rank sends
    std::ranges::stable_partition(orders[i], [&](std::uint32_t step) {
      return world.at(i).steps[step].kind == Kind::recv;
    });
  CHECK_FALSE(stuck(world, orders, 0).empty());
  std::ranges::reverse(orders[0]);
  CHECK_FALSE(misplaced(world.at(0), orders[0]).empty());
  std::ranges::reverse(orders[0]);
  orders[0].pop_back();
  CHECK_FALSE(misplaced(world.at(0), orders[0]).empty());
}

TEST_CASE("device order: one that every rank makes of its own way alone is not enough") {
  const World world({Collective::allreduce, "recursive_doubling", 9, 30, 0, true});
  std::vector<Order> orders(world.all.size());
  for (unsigned mask : {0u, ~0u}) {
    const std::vector<std::size_t> ways = world.chosen(mask);
    std::vector<RankSchedule> alike;
    for (std::size_t i : ways) alike.push_back(world.all[i]);
    for (std::size_t r = 0; r < ways.size(); ++r) orders[ways[r]] = steps_in_order(alike, r);
    CHECK(stuck(world, orders, mask).empty());
  }
  CHECK_FALSE(stuck(world, orders, 0x55555555u).empty());
}

// A block is forwarded as soon as it is there, and results do not wait until the last block leaves.
TEST_CASE("device order: a pipeline stays one") {
  Case c{Collective::allreduce, "chain", 3, 300, 0, true};
  c.segments = c.window = 4;
  const World world(c);
  for (std::size_t way : world.of[1]) {
    std::vector<int> segments;   // that the middle rank receives
    for (std::uint32_t step : steps_in_order(world.all, way))
      if (world.at(way).steps[step].kind == Kind::recv)
        segments.push_back(world.at(way).segment_of(step));
    CHECK(segments.size() == 8);
    CHECK_FALSE(std::ranges::is_sorted(segments));
  }
}

}  // namespace
}  // namespace paceline
