// A rank that computes while its peer breaks more communicators than fit into their ring.
#include <doctest/doctest.h>

#include <chrono>
#include <thread>

#include "process/ranks.hpp"
#include "runtime/clock.hpp"

namespace paceline {
namespace {

using test::expect_fault;
using test::run_ranks;

constexpr int kRanks = 2, kBroken = 40;   // a ring has 16 cells
constexpr int kComputesMs = 3000;

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

// Rank 0 gives up all of them; what it does then, while rank 1 finds out.
std::string meet(Progress progress, void (*then)(Communicator& world)) {
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
      then(world);
      return {};
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(kComputesMs));
    const double begun_s = now_s();
    for (int i = 0; i < kBroken; ++i) {
      const std::string bad =
          expect_fault(Fault::timeout, {"rank 0 has waited"},
                       [&] { parts[std::size_t(i)].run(allreduce(data, 20000)); });
      if (!bad.empty()) return str("communicator ", i, ": ", bad);
    }
    if (const double s = now_s() - begun_s; s > 10) return str("rank 1 has waited ", s, " s");
    world.run({.collective = Collective::barrier});
    return {};
  });
}

void barrier(Communicator& world) { world.run({.collective = Collective::barrier}); }

TEST_CASE("breaks that find the ring full are told as soon as there is room") {
  for (const Progress progress : {Progress::caller, Progress::thread}) {
    const std::string bad = meet(progress, barrier);
    CHECK_MESSAGE(bad.empty(), bad);
  }
}

TEST_CASE("also while the program of the rank that has them computes, by its thread") {
  const std::string bad = meet(Progress::thread, [](Communicator& world) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2 * kComputesMs));
    barrier(world);
  });
  CHECK_MESSAGE(bad.empty(), bad);
}

TEST_CASE("also where it leaves") {
  const std::string bad = run_ranks(kRanks, 60, [&](int rank, const std::string& folder) {
    Communicator world = test::join(rank, kRanks, folder, 20000);
    std::vector<float> data(100, 1.0f);
    std::vector<Communicator> parts;
    for (int i = 0; i < kBroken; ++i) parts.push_back(world.dup());
    std::string wrong;
    if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(kComputesMs));
    for (Communicator& part : parts)
      if (wrong.empty())
        wrong = expect_fault(Fault::timeout, {"rank 0 has waited"},
                             [&] { part.run(allreduce(data, rank == 0 ? 20 : 20000)); });
    return wrong;
  });
  CHECK_MESSAGE(bad.empty(), bad);
}

}  // namespace
}  // namespace paceline
