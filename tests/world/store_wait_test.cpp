// A thread that waits for a key of a store drives its calls for a while: if a peer is late, the
// session's thread goes on alone, and the waiting thread sleeps.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "bootstrap/open_world.hpp"
#include "expect_fault.hpp"
#include "graph/engine.hpp"
#include "loop/loop.hpp"
#include "store/types.hpp"
#include "world/passed_on.hpp"

namespace paceline {
namespace {

constexpr int kMostSleeps = 60;   // between looks; hundreds if the thread never stops looking
constexpr auto kLate = std::chrono::milliseconds(1000);

// Sleeps, as loop does not, and counts the sleeps of one thread.
class CountsSleeps : public test::PassedOn {
 public:
  using PassedOn::PassedOn;
  void rest(int, const std::function<bool()>&) override {
    sleeps += std::this_thread::get_id() == waiter;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  static inline std::thread::id waiter;
  static inline std::atomic<int> sleeps{0};
};

// Pushes ones, waits, and returns the sum.
double push_and_wait(LoopNet& net, int rank, const std::atomic<bool>& may_come) {
  WorldConfig config;
  config.progress = Progress::thread;
  config.timeout_ms = 60000;
  std::vector<double> buffer(4), ones(4, 1.0);
  graph::Engine engine({});
  store::DepCha store(engine, join_transport(std::make_unique<CountsSleeps>(net.endpoint(rank)),
                                             config),
                      Op::sum, nullptr);
  const std::size_t key = store.add({.name = "key", .type = Type::f64, .count = buffer.size(),
                                     .data = reinterpret_cast<std::byte*>(buffer.data())});
  while (!may_come) std::this_thread::yield();
  if (rank == 1) std::this_thread::sleep_for(kLate);
  store::Transfer value{.from = ones.data(), .to = buffer.data(),
                        .bytes = buffer.size() * sizeof(double)};
  store.push(&key, &value, 1, 0);
  store.wait({key});
  engine.close();
  return buffer[3];
}

}  // namespace

TEST_CASE("store: who waits for a late rank sleeps") {
  LoopNet net(2, {});
  std::atomic<bool> may_come{false}, at_once{true};
  double theirs = 0;
  std::string wrong;
  CountsSleeps::waiter = std::this_thread::get_id();
  std::thread other([&] {
    try {
      theirs = push_and_wait(net, 1, may_come);
    } catch (const std::exception& error) {
      wrong = error.what();
    }
  });
  CountsSleeps::sleeps = 0;
  may_come = true;
  CHECK(push_and_wait(net, 0, at_once) == 2);
  CHECK(CountsSleeps::sleeps.load() <= kMostSleeps);
  other.join();
  CHECK(wrong == "");
  CHECK(theirs == 2);
}

TEST_CASE("store: a pull that has failed is told once") {
  LoopNet net(1, {});
  std::vector<double> buffer(4);
  graph::Engine engine({});
  store::DepCha store(engine, join_transport(net.endpoint(0), {}), Op::sum, nullptr);
  const std::size_t key = store.add({.name = "key", .type = Type::f64, .count = buffer.size(),
                                     .data = reinterpret_cast<std::byte*>(buffer.data())});
  std::vector<store::Transfer> arrays(1);
  arrays[0].work = [] { fail(Fault::usage, "the array has gone"); };
  store.pull({key}, arrays, 0);
  CHECK(test::expect_fault(Fault::usage, {"the array has gone"}, [&] { store.wait(); }) == "");
  CHECK(test::expect_fault(Fault::usage, {}, [&] { store.wait(); }) == "nothing was thrown");
  engine.close();
}

}  // namespace paceline
