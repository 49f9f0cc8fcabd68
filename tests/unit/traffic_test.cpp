// Counting what steps read and write, on schedules small enough to count by hand.
#include <doctest/doctest.h>

#include "expect_fault.hpp"
#include "ir/builder.hpp"
#include "simulate/traffic.hpp"

using namespace paceline;

namespace {

constexpr std::size_t kElements = 10;   // in 4 blocks: 3, 3, 2, 2
constexpr std::size_t kBytes = 8;

Builder builder(int rank = 0) {
  return Builder({.collective = Collective::allreduce, .ranks = 3, .rank = rank}, 4);
}

Traffic count(Builder&& b) {
  return traffic_of(std::move(b).take("by_hand"), kElements, kBytes);
}

}  // namespace

TEST_CASE("traffic: each way has its name, and each end its home") {
  Builder b = builder();
  const Segment slot = b.scratch(b.output(0, 4));
  b.copy(b.input(), slot);                                           // 10 elements in
  b.signal(1);
  b.signal(2);
  b.wait(1);
  b.wait(2);
  b.reduce({b.input(0), b.of_peer(1, b.part(slot, 0, 1))}, b.output(0));   // 2 x 3 and 3
  b.copy(b.of_peer(2, b.part(slot, 2, 2)), b.output(2, 2));          // 4 out
  b.signal(1);
  b.wait(2);
  b.copy(b.input(1), b.output(1));                                   // 3, past the stage
  b.copy(b.output(3), b.of_peer(1, b.output(3)));                    // 2, past the stage
  const Traffic got = count(std::move(b));
  CHECK(got.of(Pass::copy_in) == Moved{80, 80, 0});
  CHECK(got.of(Pass::reduce) == Moved{48, 24, 0});
  CHECK(got.of(Pass::copy_out) == Moved{32, 32, 0});
  CHECK(got.of(Pass::copy) == Moved{40, 40, 0});
  CHECK(got.of(Home::buffer) == Moved{80 + 24 + 24 + 16, 24 + 32 + 24, 0});
  CHECK(got.of(Home::stage) == Moved{0, 80, 0});
  CHECK(got.of(Home::peer_stage) == Moved{24 + 32, 0, 0});
  CHECK(got.of(Home::peer_buffer) == Moved{0, 16, 0});
  CHECK(got.total() == Moved{200, 176, 0});
  CHECK(got.signals == 3);
  CHECK(got.syncs == 2);
}

TEST_CASE("traffic: what was just made is read again, until somebody is met") {
  Builder b = builder();
  const Segment slot = b.scratch(b.output(0));
  b.reduce({b.input(0), b.of_peer(1, b.input(0))}, b.output(0));
  b.finish(b.output(0));
  b.copy(b.output(0), slot);
  b.copy(b.output(0), b.of_peer(1, b.output(0)));   // still there
  b.copy(b.output(1), b.of_peer(1, b.output(1)));   // not made here
  b.signal(1);
  b.copy(b.output(1), b.of_peer(2, b.output(1)));
  CHECK(count(std::move(b)).total().again == 24 + 24);
}

TEST_CASE("traffic: of steps and ranks, the sum; of meetings, the most") {
  std::vector<Schedule> world;
  for (int rank = 0; rank < 2; ++rank) {
    Builder b = builder(rank);
    if (rank == 1) b.wait(0);
    else b.signal(1);
    b.copy(b.input(rank), b.output(rank));
    world.push_back(std::move(b).take("by_hand"));
  }
  const Traffic all = traffic_of(world, kElements, kBytes);
  CHECK(all.total() == Moved{48, 48, 0});
  CHECK(all.signals == 1);
  CHECK(all.syncs == 1);
  const auto steps = traffic_by_step(world[0], kElements, kBytes);
  REQUIRE(steps.size() == 2);
  CHECK(steps[0].total() == Moved{});
  CHECK(steps[1].of(Pass::copy) == Moved{24, 24, 0});
}

TEST_CASE("traffic: messages are not counted") {
  Builder b = builder();
  b.send(1, {b.input(0)});
  const Schedule schedule = std::move(b).take("by_hand");
  CHECK(test::expect_fault(Fault::internal, {"sends messages"}, [&] {
          traffic_of(schedule, 1, 1);
        }).empty());
}
