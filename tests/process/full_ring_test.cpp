// A rank that computes while its peer breaks more communicators than fit into their ring.
#include <doctest/doctest.h>

#include <filesystem>

#include "process/ranks.hpp"
#include "runtime/progress/clock.hpp"

namespace paceline {
namespace {

using test::await_note;
using test::expect_fault;
using test::note;
using test::run_ranks;

constexpr int kRanks = 2, kBroken = 40;   // communicators; a ring has 16 cells

Call allreduce(std::vector<float>& data, int timeout_ms) {
  Call call;
  call.collective = Collective::allreduce;
  call.type = Type::f32;
  call.input = call.output = data.data();
  call.count = data.size();
  call.algorithm = "ring";   // rank 1 cannot end it alone
  call.timeout_ms = timeout_ms;
  return call;
}

using Then = void (*)(Communicator& world, const std::string& folder);

// Calls of rank 0 time out on all of them while rank 1 computes. `then`: what rank 0 does while
// rank 1 makes the same calls, each of which must fail with rank 0's words.
std::string meet(Progress progress, Then then) {
  return run_ranks(kRanks, 60, [&](int rank, const std::string& folder) -> std::string {
    Communicator world = test::join(rank, kRanks, folder, 20000, progress);
    std::vector<float> data(100, 1.0f);
    std::vector<Communicator> parts;
    for (int i = 0; i < kBroken; ++i) parts.push_back(world.dup());
    if (rank == 0) {
      for (Communicator& part : parts) {
        const std::string bad = expect_fault(Fault::timeout, {"rank 0 has waited"},
                                             [&] { part.run(allreduce(data, 20)); });
        if (!bad.empty()) return bad;
      }
      note(folder, "broken");
      then(world, folder);
      return {};
    }
    await_note(folder, "broken");
    const double begun_s = now_s();
    for (int i = 0; i < kBroken; ++i) {
      const std::string bad =
          expect_fault(Fault::timeout, {"rank 0 has waited"},
                       [&] { parts[std::size_t(i)].run(allreduce(data, 20000)); });
      if (!bad.empty()) return str("communicator ", i, ": ", bad);
    }
    if (const double s = now_s() - begun_s; s > 15) return str("rank 1 has waited ", s, " s");
    note(folder, "found out");
    world.run({.collective = Collective::barrier});
    return {};
  });
}

void barrier(Communicator& world, const std::string&) {
  world.run({.collective = Collective::barrier});
}

TEST_CASE("full ring: a peer hears of broken communicators as soon as there is room") {
  for (const Progress progress : {Progress::caller, Progress::thread}) {
    const std::string bad = meet(progress, barrier);
    CHECK_MESSAGE(bad.empty(), bad);
  }
}

TEST_CASE("full ring: the progress thread tells of broken communicators by itself") {
  const Then then = [](Communicator& world, const std::string& folder) {
    await_note(folder, "found out");
    barrier(world, folder);
  };
  const std::string bad = meet(Progress::thread, then);
  CHECK_MESSAGE(bad.empty(), bad);
}

TEST_CASE("full ring: a rank that leaves tells of broken communicators first") {
  const std::string bad = run_ranks(kRanks, 60, [&](int rank, const std::string& folder) {
    Communicator world = test::join(rank, kRanks, folder, 20000);
    std::vector<float> data(100, 1.0f);
    std::vector<Communicator> parts;
    for (int i = 0; i < kBroken; ++i) parts.push_back(world.dup());
    std::string wrong;
    if (rank == 1) await_note(folder, "broken");
    for (Communicator& part : parts)
      if (wrong.empty())
        wrong = expect_fault(Fault::timeout, {"rank 0 has waited"},
                             [&] { part.run(allreduce(data, rank == 0 ? 20 : 20000)); });
    if (rank == 0) note(folder, "broken");
    return wrong;
  });
  CHECK_MESSAGE(bad.empty(), bad);
}

// Of what lies unread at a rank there is a most, and what exceeds it waits for its receive.
TEST_CASE("full ring: what came for a communicator that is closed leaves its room to others") {
  constexpr int kMessages = 1009;   // of 4 KiB and a header: the last one exceeds 4 MiB
  const std::string bad = run_ranks(kRanks, 60, [&](int rank, const std::string& folder) {
    Communicator world = test::join(rank, kRanks, folder, 20000);
    std::vector<float> data(1024, 1.0f);
    const auto broadcast = [&](Communicator& from_rank_1) {
      Call call{Collective::broadcast, Type::f32};
      call.input = call.output = data.data();
      call.count = data.size();
      call.root = 1;
      call.algorithm = "binomial";   // by messages
      return from_rank_1.start(call);
    };
    const auto look_until = [&](const std::string& what) {   // in no call
      while (!std::filesystem::exists(str(folder, "/note.", what))) (void)world.is_called();
    };
    std::string wrong;
    {
      Communicator closed = world.subgroup({0, 1}, 7);
      for (int i = 0; i < kMessages && rank == 1; ++i) broadcast(closed).wait();
      rank == 1 ? note(folder, "sent") : look_until("sent");
    }
    for (int i = 0; i < 3; ++i) (void)world.is_called();
    if (rank == 0) {
      note(folder, "closed");
      await_note(folder, "seen");
      broadcast(world).wait();
      return wrong;
    }
    await_note(folder, "closed");
    Request last = broadcast(world);
    for (int i = 0; i < 1000 && !last.test(); ++i) usleep(100);
    if (!last.test()) wrong = "a message waits for its receive, as if there were no room";
    note(folder, "seen");
    last.wait();
    return wrong;
  });
  CHECK_MESSAGE(bad.empty(), bad);
}

}  // namespace
}  // namespace paceline
