// Limits of calls, where whoever waits does so for a moment at a time: it drives everything, so the
// session's own thread leaves it to him to see that time is up.
#include <doctest/doctest.h>

#include <chrono>
#include <thread>

#include "expect_fault.hpp"
#include "runtime/progress/clock.hpp"
#include "runtime/progress/session.hpp"
#include "transport/loop/loop.hpp"
#include "world/passed_on.hpp"

namespace paceline {
namespace {

// As on a machine with other programs: a sleep takes longer than was asked for.
class Drowsy : public test::PassedOn {
 public:
  using PassedOn::PassedOn;
  void rest(int, const std::function<bool()>&) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
};

int looks = 0;

Communicator join(LoopNet& net, int rank) {
  WorldConfig config;
  config.progress = Progress::thread;
  config.timeout_ms = 300;
  config.idle = [] { ++looks; };
  return join_transport(std::make_unique<Drowsy>(net.endpoint(rank)), config);
}

}  // namespace

TEST_CASE("limits: time is up also for who waits a millisecond at a time") {
  LoopNet net(2, {});
  Communicator mine = join(net, 0), late = join(net, 1);
  Request barrier = mine.start({});
  looks = 0;
  const auto wait = [&] {
    for (const double begun_s = now_s(); now_s() - begun_s < 10;)
      if (barrier.wait_for(1)) return;
  };
  CHECK(test::expect_fault(Fault::timeout, {"rank 1 has not called anything yet"}, wait) == "");
  CHECK(looks > 0);   // at what else the caller looks for, such as Ctrl-C
}

}  // namespace paceline
