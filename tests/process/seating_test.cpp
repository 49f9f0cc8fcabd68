// Communicators that are made later: their ranks find each other's memory then, and need each other
// no more once they have made a call.
#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "process/ranks.hpp"

namespace paceline {
namespace {

using test::expect_fault;
using test::join;
using test::run_ranks;

constexpr int kRanks = 3;

// Something that ranks tell each other besides.
struct Word {
  std::string path;
  void say() const { std::ofstream{path}; }
  void wait_for() const {
    while (!std::filesystem::exists(path))
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
};

struct Maker {
  const char* name;
  int root;   // where rank 0 of the world is then
  Communicator (*make)(Communicator& world);
};

const Maker kMakers[] = {
    {"dup", 0, [](Communicator& world) { return world.dup(); }},
    {"split", kRanks - 1, [](Communicator& world) { return world.split(0, -world.rank()); }},
    {"subgroup", 1, [](Communicator& world) {
       Communicator made = world.subgroup({2, 0, 1}, 9);
       made.seat_together();
       return made;
     }}};

TEST_CASE("who leaves right after the first call takes nothing from those who make it later") {
  for (const Maker& maker : kMakers) {
    const auto body = [&](int rank, const std::string& folder) -> std::string {
      const Word left{folder + "/left"};
      Communicator world = join(rank, kRanks, folder), later = maker.make(world);
      std::vector<float> data(100, rank == 0 ? 3.5f : 0.0f);
      if (rank != 0) left.wait_for();
      later.run({.collective = Collective::broadcast,
                 .type = Type::f32,
                 .root = maker.root,
                 .input = data.data(),
                 .output = data.data(),
                 .count = data.size()});
      if (rank == 0) {
        world.leave();
        left.say();
      }
      return data[99] == 3.5f ? "" : str("rank ", rank, " has ", data[99]);
    };
    const std::string bad = run_ranks(kRanks, 30, body);
    CHECK_MESSAGE(bad.empty(), std::string(maker.name) << ": " << bad);
  }
}

TEST_CASE("who makes a communicator that a peer does not make hears which, in time") {
  const std::string bad =
      run_ranks(kRanks, 30, [](int rank, const std::string& folder) -> std::string {
        const Word over{folder + "/over"};
        Communicator world = join(rank, kRanks, folder);
        if (rank != 0) {
          over.wait_for();
          return {};
        }
        Communicator part = world.subgroup({1, 0}, 5);
        part.set_timeout(300);
        const std::string wrong = expect_fault(
            Fault::timeout,
            {"new communicator", "rank 0 (rank 1 of the world)", "0.3 s", "timeout_ms"},
            [&] { part.seat_together(); });
        over.say();
        return wrong;
      });
  CHECK_MESSAGE(bad.empty(), bad);
}

TEST_CASE("who makes a communicator with a rank that dies or leaves hears which") {
  for (const bool dies : {false, true}) {
    const auto body = [&](int rank, const std::string& folder) -> std::string {
      Communicator world = join(rank, kRanks, folder);
      if (rank == 1 && dies) raise(SIGKILL);
      if (rank == 1) return {};
      Communicator part = world.subgroup({0, 1, 2}, 5);
      return expect_fault(Fault::lost, {"rank 1 is lost", dies ? "died" : "left"},
                          [&] { part.seat_together(); });
    };
    const std::string bad = run_ranks(kRanks, 30, body);
    CHECK_MESSAGE(bad.empty(), (dies ? "dies: " : "leaves: ") << bad);
  }
}

}  // namespace
}  // namespace paceline
