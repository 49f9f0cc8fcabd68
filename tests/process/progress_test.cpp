// The thread that drives calls: when it begins, and that calls end while their ranks do other work.
#include <doctest/doctest.h>

#include <filesystem>
#include <vector>

#include "base/error.hpp"
#include "base/str.hpp"
#include "process/ranks.hpp"

namespace paceline {
namespace {

using test::run_ranks;

constexpr int kRanks = 2;

std::ptrdiff_t threads() {
  std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::distance(begin(tasks), end(tasks));
}

Call ring(std::vector<float>& data) {
  Call call;
  call.collective = Collective::allreduce;
  call.type = Type::f32;
  call.input = call.output = data.data();
  call.count = data.size();
  call.algorithm = "ring";   // needs each rank until the end
  return call;
}

// Says what is wrong on this rank. Rank 0 starts a call and does nothing until the other one has
// seen its end.
std::string start_and_look_away(int rank, const std::string& folder, Progress progress,
                                int limit_ms) {
  const std::ptrdiff_t before = threads();
  Communicator world = test::join(rank, kRanks, folder, limit_ms, progress);
  std::vector<float> data(100000, 1.0f);
  for (int i = 0; i < 3; ++i) world.run(ring(data));
  if (progress == Progress::when_started && threads() != before)
    return "there is a thread before a call is started";
  Request request = world.start(ring(data));
  if (progress == Progress::when_started && threads() != before + 1)
    return "no thread has begun with the first call";
  if (rank == 0) test::await_note(folder, "seen");
  try {
    request.wait();
  } catch (const Error& error) {
    if (rank == 1) test::note(folder, "seen");
    return str("rank ", rank, ": ", error.what());
  }
  if (rank == 1) test::note(folder, "seen");
  return data[99999] == 16.0f ? "" : "a wrong sum";
}

TEST_CASE("progress: a thread begins with the first call that is started, and drives it") {
  for (const Progress progress : {Progress::thread, Progress::when_started})
    CHECK(run_ranks(kRanks, 30, [&](int rank, const std::string& folder) {
            return start_and_look_away(rank, folder, progress, 20000);
          }) == "");
}

TEST_CASE("progress: without one the call waits for its caller, and times out") {
  const std::string bad = run_ranks(kRanks, 30, [](int rank, const std::string& folder) {
    return start_and_look_away(rank, folder, Progress::caller, 500);
  });
  CHECK_MESSAGE(bad.find("rank 1 has waited") != bad.npos, bad);
}

}  // namespace
}  // namespace paceline
