// The order in which a rank's device does its steps: whoever does them one after the other, and
// waits for a message where it comes, gets to the end.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "engine/enqueued.hpp"
#include "ir/lower.hpp"
#include "world/cases.hpp"
#include "world/worlds.hpp"

namespace paceline {
namespace {

using test::Case;
using Order = std::vector<std::uint32_t>;

std::vector<Schedule> world_of(const Case& c) {
  std::vector<Schedule> world;
  for (int rank = 0; rank < c.ranks; ++rank) {
    const Problem problem{.collective = c.collective, .ranks = c.ranks, .rank = rank,
                          .root = c.root, .in_place = c.in_place, .uneven = c.uneven};
    world.push_back(lower(find_algorithm(c.collective, c.algorithm), problem,
                          {.segments = c.segments, .window = c.window, .knobs = c.knobs},
                          Reader::device));
  }
  return world;
}

std::vector<Order> orders_of(const std::vector<Schedule>& world) {
  std::vector<const Schedule*> all;
  for (const Schedule& schedule : world) all.push_back(&schedule);
  std::vector<Order> orders;
  for (std::size_t at = 0; at < world.size(); ++at)
    orders.push_back(steps_in_order(all, static_cast<int>(at)));
  return orders;
}

// Empty where every rank gets to the end; sends never wait.
std::string stuck(const std::vector<Schedule>& world, const std::vector<Order>& orders) {
  std::map<std::tuple<int, int, int, bool, int>, int> sent;   // from, to, lane, is a signal, number
  std::vector<std::size_t> next(world.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t at = 0; at < world.size(); ++at)
      while (next[at] < orders[at].size()) {
        const Step& step = world[at].steps[orders[at][next[at]]];
        const int me = static_cast<int>(at);
        const bool signals = step.kind == Kind::signal || step.kind == Kind::wait;
        if (step.kind == Kind::send || step.kind == Kind::signal)
          ++sent[{me, step.peer, step.lane, signals, step.seq}];
        if (step.kind == Kind::recv || step.kind == Kind::wait)
          if (!sent.contains({step.peer, me, step.lane, signals, step.seq})) break;
        ++next[at];
        moved = true;
      }
  }
  for (std::size_t at = 0; at < world.size(); ++at)
    if (next[at] < orders[at].size())
      return str("rank ", at, " waits at ", next[at], " of ", orders[at].size(), " steps");
  return "";
}

// Empty where every step comes once, and after those that it depends on.
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
      const auto world = world_of(c);
      const auto orders = orders_of(world);
      for (std::size_t at = 0; at < world.size(); ++at) {
        const std::string bad = misplaced(world[at], orders[at]);
        CHECK_MESSAGE(bad.empty(), c.name(), ": ", bad);
      }
      const std::string bad = stuck(world, orders);
      CHECK_MESSAGE(bad.empty(), c.name(), ": ", bad);
    });
}

TEST_CASE("device order: a receive that one rank takes too early is found") {
  const Case c{Collective::allreduce, "ring", 3, 30, 0, true};
  const auto world = world_of(c);
  auto orders = orders_of(world);
  for (std::size_t at = 0; at < world.size(); ++at) {   // all of them before what the rank sends
    const auto receives = [&](std::uint32_t step) {
      return world[at].steps[step].kind == Kind::recv;
    };
    std::ranges::stable_partition(orders[at], receives);
  }
  CHECK_FALSE(stuck(world, orders).empty());
  CHECK_FALSE(misplaced(world[0], orders[0]).empty());
  orders[0].pop_back();
  CHECK_FALSE(misplaced(world[0], orders[0]).empty());
}

// A block goes on as soon as it is there, and results do not wait for the last block to leave.
TEST_CASE("device order: a pipeline stays one") {
  Case c{Collective::allreduce, "chain", 3, 300, 0, true};
  c.segments = c.window = 4;
  const auto world = world_of(c);
  const auto orders = orders_of(world);
  std::vector<int> segments;   // that the middle rank receives
  for (std::uint32_t step : orders[1])
    if (world[1].steps[step].kind == Kind::recv) segments.push_back(world[1].segment_of(step));
  REQUIRE(segments.size() == 8);
  CHECK_FALSE(std::ranges::is_sorted(segments));
}

}  // namespace
}  // namespace paceline
