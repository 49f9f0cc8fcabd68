// Time limits of calls whose caller waits for a moment at a time: the caller drives all operations,
// so the session's own thread leaves the limits to it.
#include <doctest/doctest.h>

#include <chrono>
#include <thread>

#include "bootstrap/open_world.hpp"
#include "expect_fault.hpp"
#include "loop/loop.hpp"
#include "runtime/progress/clock.hpp"
#include "world/passed_on.hpp"

namespace paceline {
namespace {

// Sleeps longer than requested, as on a machine with other programs.
class Drowsy : public test::PassedOn {
 public:
  using PassedOn::PassedOn;
  void rest(int, const std::function<bool()>&) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
};

// Never rests, as if calls of others, or of another communicator, went on all the time.
class Restless : public test::PassedOn {
 public:
  using PassedOn::PassedOn;
  bool progress() override { return PassedOn::progress(), true; }
};

int looks = 0;

template <class TransportOfTest>
Communicator join(LoopNet& net, int rank, Progress progress) {
  WorldConfig config;
  config.progress = progress;
  config.timeout_ms = 300;
  config.idle = [] { ++looks; };
  return join_transport(std::make_unique<TransportOfTest>(net.endpoint(rank)), config);
}

}  // namespace

TEST_CASE("limits: time is up also for who waits a millisecond at a time") {
  LoopNet net(2, {});
  Communicator mine = join<Drowsy>(net, 0, Progress::thread);
  Communicator late = join<Drowsy>(net, 1, Progress::thread);
  Request barrier = mine.start({});
  looks = 0;
  const auto wait = [&] {
    for (const double begun_s = now_s(); now_s() - begun_s < 10;)
      if (barrier.wait_for(1)) return;
  };
  CHECK(test::expect_fault(Fault::timeout, {"rank 1 has not called anything yet"}, wait) == "");
  CHECK(looks > 0);   // the caller also looked for Ctrl-C and the like
}

TEST_CASE("limits: time is up also while something else moves all the time") {
  LoopNet net(2, {});
  Communicator mine = join<Restless>(net, 0, Progress::caller);
  Communicator late = join<Restless>(net, 1, Progress::caller);
  Request barrier = mine.start({});
  const auto wait = [&] { barrier.wait_for(10000); };
  CHECK(test::expect_fault(Fault::timeout, {"rank 1 has not called anything yet"}, wait) == "");
}

TEST_CASE("limits: a group's own limit ends its calls and no other group's") {
  LoopNet net(2, {});
  WorldConfig config;
  config.timeout_ms = 60000;
  Communicator world[] = {join_transport(net.endpoint(0), config),
                          join_transport(net.endpoint(1), config)};
  Communicator group[] = {world[0].subgroup({0, 1}, 7), world[1].subgroup({0, 1}, 7)};
  CHECK(group[0].timeout_ms() == 60000);
  group[0].set_timeout(300);
  CHECK(group[0].timeout_ms() == 300);
  CHECK(group[0].subgroup({0, 1}, 8).timeout_ms() == 300);   // begins with that of its parent
  CHECK(world[0].timeout_ms() == 60000);
  CHECK(group[1].timeout_ms() == 60000);   // each rank has its own
  Request of_world = world[0].start({}), of_group = group[0].start({});
  const auto wait = [&] { of_group.wait(); };
  CHECK(test::expect_fault(Fault::timeout, {"rank 1", "0.3 s"}, wait) == "");
  std::thread late([&] { world[1].run({}); });
  of_world.wait();
  late.join();
}

}  // namespace paceline
