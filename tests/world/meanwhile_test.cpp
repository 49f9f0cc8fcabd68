// Other work in the process of a waiting rank: a host MPI's messages and one-sided calls. While
// some of it moves, the rank does not sleep between two looks at it.
#include <doctest/doctest.h>

#include <atomic>
#include <string>
#include <thread>

#include "bootstrap/open_world.hpp"
#include "loop/loop.hpp"
#include "world/passed_on.hpp"

namespace paceline {
namespace {

constexpr int kLooks = 1000;   // looks of a rank that is left waiting

std::atomic<int> looks{0}, sleeps{0};

bool moves() { return ++looks > 0; }
bool does_not_move() { return ++looks < 0; }

class CountsSleeps : public test::PassedOn {
 public:
  using PassedOn::PassedOn;
  bool counts = false;
  void rest(int timeout_us, const std::function<bool()>& can_progress) override {
    if (counts) ++sleeps;
    PassedOn::rest(timeout_us, can_progress);
  }
};

struct Seen {
  int looks, sleeps;
};

// Rank 0 waits in a barrier till it has looked often enough, then the other one comes.
Seen wait_in_barrier(bool (*meanwhile)()) {
  LoopNet net(2, {});
  Seen seen{};
  std::atomic<bool> is_counting{false};
  std::string wrong;
  const auto play = [&](int rank) {
    WorldConfig config;
    config.progress = Progress::caller;
    config.timeout_ms = 60000;
    auto endpoint = std::make_unique<CountsSleeps>(net.endpoint(rank));
    endpoint->counts = rank == 0;
    if (rank == 0) config.meanwhile = meanwhile;
    Communicator world = join_transport(std::move(endpoint), config);
    Call barrier;
    if (rank == 1) {
      while (!is_counting || looks < kLooks) std::this_thread::yield();
      return world.run(barrier);
    }
    looks = sleeps = 0;
    is_counting = true;
    world.run(barrier);
    seen = {looks, sleeps};
  };
  std::thread other([&] {
    try {
      play(1);
    } catch (const std::exception& error) {
      wrong = error.what();
    }
  });
  CHECK_NOTHROW(play(0));
  other.join();
  CHECK(wrong == "");
  return seen;
}

}  // namespace

TEST_CASE("meanwhile: who waits looks without sleeps while something moves") {
  const Seen moving = wait_in_barrier(moves);
  CHECK(moving.looks >= kLooks);
  CHECK(moving.sleeps == 0);
  const Seen still = wait_in_barrier(does_not_move);
  CHECK(still.sleeps > still.looks / 2);
}

}  // namespace paceline
