// Plans that are made while another thread starts calls of the same shape.
#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "process/ranks.hpp"
#include "runtime/session.hpp"
#include "transport/loop/loop.hpp"

namespace paceline {
namespace {

// Each held request takes a flight of its own of the shape that the plans are made of.
TEST_CASE("plans are made beside other threads") {
  constexpr int kRounds = 40, kHeld = 32;
  LoopNet net(2, {});
  WorldConfig config;
  config.progress = Progress::caller;
  Communicator world = join_transport(net.endpoint(0), config);
  Communicator peer = join_transport(net.endpoint(1), config);
  std::vector<float> data(64, 1.0f);
  const auto call_of = [&](std::size_t count) {
    Call call;
    call.collective = Collective::allreduce;
    call.type = Type::f32;
    call.input = call.output = data.data();
    call.count = count;
    call.algorithm = "ring";
    return call;
  };
  std::atomic<int> round{0};
  std::atomic<bool> over{false};
  std::thread plans([&] {
    while (!over) (void)world.plan(call_of(1 + std::size_t(round.load()) % 60));
  });
  for (; round < kRounds; ++round) {
    Communicator apart = world;   // the same; its requests are never ended by the peer
    std::vector<Request> held;
    for (int i = 0; i < kHeld; ++i)
      held.push_back(apart.start(call_of(1 + std::size_t(round.load()) % 60)));
  }
  over = true;
  plans.join();
  world.leave();
  peer.leave();
}

}  // namespace
}  // namespace paceline
