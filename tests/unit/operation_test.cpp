// One rank's operation by itself, over a transport that only records its calls.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "coll/algorithms.hpp"
#include "engine/message_operation.hpp"
#include "ir/fuse.hpp"

namespace paceline {
namespace {

struct Recorder : Transport {
  std::vector<Transfer*> sent, received, cancelled;

  std::string_view name() const override { return "recorder"; }
  int rank() const override { return 0; }
  int ranks() const override { return 4; }
  void listen(Listener*) override {}
  void send(Transfer& t) override { sent.push_back(&t); }
  void recv(Transfer& t) override { received.push_back(&t); }
  void cancel(Transfer& t) override { cancelled.push_back(&t); }
  bool progress() override { return false; }
  void unexpected(const KeyRange&, const Visit&) const override {}
  void abort(int, std::uint64_t, const std::string&) override {}
  void leave(Leaving) override {}
  void check_peers() override {}
  void rest(int, const std::function<bool()>&) override {}
  void wake() override {}
  void publish_status(const PeerStatus&) override {}
  PeerStatus peer_status(int) const override { return {}; }
};

struct World {
  std::vector<int> ranks{0, 1, 2, 3};
  std::shared_ptr<const Schedule> schedule;
  std::vector<float> in = std::vector<float>(64, 1), out = std::vector<float>(64);
  std::vector<std::byte> scratch;
  MessageOperation operation;

  explicit World(const Algorithm& a)
      : schedule(std::make_shared<Schedule>(
            fuse(build(a, {.collective = a.collective, .ranks = 4})))),
        operation(std::make_shared<CompiledSchedule>(resolve(
                      schedule, even_layout(schedule->problem, 64), Type::f32, Op::sum)),
                  {7, &ranks}) {
    scratch.resize(operation.scratch_bytes());
  }
  void start() { operation.start({in.data(), out.data(), scratch.data()}, 3, {}); }
};

TEST_CASE("an operation that is stopped before its first step posts nothing any more") {
  World world(allreduce_ring);
  Recorder transport;
  world.start();
  world.operation.stop(transport, Error(Fault::mismatch, "no"));
  CHECK(world.operation.done());
  CHECK(world.operation.error()->fault() == Fault::mismatch);
  CHECK_FALSE(world.operation.advance(transport));
  CHECK(transport.sent.empty());
  CHECK(transport.received.empty());
}

TEST_CASE("what is under way is cancelled when an operation is stopped") {
  World world(allreduce_ring);
  Recorder transport;
  world.start();
  world.operation.advance(transport);
  const std::size_t posted = transport.sent.size() + transport.received.size();
  REQUIRE(posted > 0);
  world.operation.stop(transport, Error(Fault::lost, "no"));
  CHECK(transport.cancelled.size() == posted);
  world.operation.advance(transport);
  CHECK(transport.sent.size() + transport.received.size() == posted);
}

TEST_CASE("messages are named by communicator, operation and number, and go to the world's rank") {
  World world(allreduce_ring);
  Recorder transport;
  world.start();
  world.operation.advance(transport);
  REQUIRE(transport.sent.size() == 1);
  CHECK(transport.sent[0]->peer == 1);
  CHECK(transport.sent[0]->key == Key{7, 3, 0, false, 0});
  CHECK(transport.sent[0]->bytes == 16 * sizeof(float));
  CHECK(world.operation.waits_for() == std::vector<int>{1, 3});
}

TEST_CASE("a schedule that touches a peer's buffer is refused, not executed on one's own") {
  Builder b({.collective = Collective::allreduce, .ranks = 2}, 1);
  b.copy(b.of_peer(1, b.input()), b.output());
  const auto schedule = std::make_shared<Schedule>(std::move(b).take("hand-written"));
  CHECK_THROWS_WITH_AS(
      resolve(schedule, even_layout(schedule->problem, 8), Type::f32, Op::sum),
      doctest::Contains("rank 1"), Error);
}

TEST_CASE("an operation can be started again") {
  World world(allreduce_ring);
  Recorder transport;
  for (int round = 1; round < 3; ++round) {
    world.start();
    world.operation.advance(transport);
    CHECK(transport.sent.size() == static_cast<std::size_t>(round));
    world.operation.stop(transport, Error(Fault::lost, "again"));
  }
}

}  // namespace
}  // namespace paceline
