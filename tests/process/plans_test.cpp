// Plans that are made while another thread starts calls of the same shape.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "bootstrap/open_world.hpp"
#include "loop/loop.hpp"
#include "process/ranks.hpp"

namespace paceline {
namespace {

// Each held request takes an operation of its own of the shape that the plans are made of.
TEST_CASE("plans: made and started while another thread makes calls") {
  constexpr int kRounds = 40, kHeld = 32;
  LoopNet net(2, {});
  WorldConfig config;
  config.progress = Progress::caller;
  Communicator world = join_transport(net.endpoint(0), config);
  Communicator peer = join_transport(net.endpoint(1), config);
  using Data = std::vector<std::vector<float>>;   // a buffer for each call of a round
  Data mine(kHeld, std::vector<float>(64)), theirs = mine;
  std::vector<float> planned(64, 1.0f), planned_by_peer(64, 2.0f);
  const auto call_of = [](std::vector<float>& data, int round) {
    Call call;
    call.collective = Collective::allreduce;
    call.type = Type::f32;
    call.input = call.output = data.data();
    call.count = 1 + std::size_t(round) % 60;
    call.algorithm = "ring";
    return call;
  };
  std::atomic<int> round{0};
  std::atomic<bool> over{false};
  std::vector<Plan> made;
  int made_in = 0;
  std::thread plans([&] {
    while (!over || made.empty()) {
      made.clear();
      made.push_back(world.plan(call_of(planned, made_in = round.load())));
    }
  });
  const auto finish = [](std::vector<Request>& held) {
    const auto is_done = [](Request& request) { return request.test(); };
    while (std::ranges::count_if(held, is_done) < std::ssize(held)) {
    }
  };
  std::size_t wrong = 0;
  for (; round < kRounds; ++round) {
    std::vector<Request> held;
    for (int i = 0; i < kHeld; ++i) {
      std::ranges::fill(mine[std::size_t(i)], float(i));
      std::ranges::fill(theirs[std::size_t(i)], 1.0f);
      held.push_back(world.start(call_of(mine[std::size_t(i)], round)));
      held.push_back(peer.start(call_of(theirs[std::size_t(i)], round)));
    }
    finish(held);
    for (int i = 0; i < kHeld; ++i)
      for (const Data* data : {&mine, &theirs})
        wrong += (*data)[std::size_t(i)][0] != float(i + 1);
  }
  over = true;
  plans.join();
  CHECK(wrong == 0);
  std::vector<Request> held{made.front().start(), peer.start(call_of(planned_by_peer, made_in))};
  finish(held);
  CHECK(planned[0] == 3);
  CHECK(planned_by_peer[0] == 3);
  world.leave();
  peer.leave();
}

}  // namespace
}  // namespace paceline
