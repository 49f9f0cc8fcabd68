// Who leaves while peers have yet to find what it shows, on communicators that were made later.
#include <doctest/doctest.h>

#include <chrono>
#include <thread>

#include "process/ranks.hpp"
#include "runtime/progress/clock.hpp"

namespace paceline {
namespace {

using test::expect_fault;
using test::run_ranks;

constexpr int kRanks = 3, kFindersMs = 100;

Communicator join(int rank, const std::string& folder, int attachers_ms) {
  WorldConfig config;
  config.rank = rank;
  config.ranks = kRanks;
  config.timeout_ms = 20000;
  config.start_timeout_ms = 20000;
  config.progress = Progress::caller;
  config.shm_bytes = 4u << 20;
  config.attachers_ms = attachers_ms;
  return join_world(std::make_shared<FileStore>(folder), config);
}

// From the one that was rank 0 of the world; what it has brought.
float broadcast(Communicator& comm, int root, float value) {
  std::vector<float> data(100, value);
  comm.run({.collective = Collective::broadcast,
            .type = Type::f32,
            .root = root,
            .input = data.data(),
            .output = data.data(),
            .count = data.size()});
  return data[99];
}

void barrier(Communicator& comm) { comm.run({.collective = Collective::barrier}); }

std::string leaves_soon(Communicator& world) {
  const double begun_s = now_s();
  world.leave();
  const double took_s = now_s() - begun_s;
  return took_s < 10 ? "" : str("to leave took ", took_s, " s");
}

struct Maker {
  const char* name;
  int root;   // where rank 0 of the world is then
  Communicator (*make)(Communicator& world);
};

const Maker kMakers[] = {
    {"dup", 0, [](Communicator& world) { return world.dup(); }},
    {"split", kRanks - 1, [](Communicator& world) { return world.split(0, -world.rank()); }},
    {"subgroup", 1, [](Communicator& world) { return world.subgroup({2, 0, 1}, 9); }}};

// A peer that computes may take far longer than one that waits would be given.
TEST_CASE("who leaves right after the first call waits for those who make it later") {
  for (const Maker& maker : kMakers) {
    const auto body = [&](int rank, const std::string& folder) -> std::string {
      Communicator world = join(rank, folder, kFindersMs), later = maker.make(world);
      std::this_thread::sleep_for(std::chrono::milliseconds(3 * kFindersMs * rank));
      const float found = broadcast(later, maker.root, rank == 0 ? 3.5f : 0.0f);
      world.leave();
      return found == 3.5f ? "" : str("rank ", rank, " has ", found);
    };
    const std::string bad = run_ranks(kRanks, 30, body);
    CHECK_MESSAGE(bad.empty(), std::string(maker.name) << ": " << bad);
  }
}

// They look around while they wait, and hear at once that it has left.
TEST_CASE("who leaves is not held up by those who wait for it in another call") {
  const std::string bad =
      run_ranks(kRanks, 30, [](int rank, const std::string& folder) -> std::string {
        Communicator world = join(rank, folder, 25000), later = world.dup();
        if (rank == 0) {
          broadcast(later, 0, 3.5f);
          world.leave();
          return {};
        }
        std::string wrong = expect_fault(Fault::lost, {"rank 0 is lost", "left"},
                                         [&] { barrier(world); });
        if (wrong.empty() && broadcast(later, 0, 0) != 3.5f) wrong = "what it had sent is lost";
        return wrong;
      });
  CHECK_MESSAGE(bad.empty(), bad);
}

TEST_CASE("nor for long by those who wait for it and have yet to make the communicator") {
  const std::string bad =
      run_ranks(kRanks, 30, [](int rank, const std::string& folder) -> std::string {
        Communicator world = join(rank, folder, kFindersMs);
        if (rank == 0) {
          Communicator part = world.subgroup({0, 1}, 5);
          broadcast(part, 0, 3.5f);
          return leaves_soon(world);
        }
        return expect_fault(Fault::lost, {"rank 0 is lost", "left"}, [&] { barrier(world); });
      });
  CHECK_MESSAGE(bad.empty(), bad);
}

TEST_CASE("nor at all by those who are gone") {
  const std::string bad =
      run_ranks(kRanks, 30, [](int rank, const std::string& folder) -> std::string {
        Communicator world = join(rank, folder, 25000);
        if (rank == 1) return {};
        if (rank == 2) raise(SIGKILL);
        Communicator part = world.subgroup({0, 1, 2}, 5);
        broadcast(part, 0, 3.5f);
        return leaves_soon(world);
      }, {{2, SIGKILL}});
  CHECK_MESSAGE(bad.empty(), bad);
}

}  // namespace
}  // namespace paceline
