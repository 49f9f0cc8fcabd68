// The numbers of calls have 32 bits: what happens when they begin anew.
#include <doctest/doctest.h>

#include "bootstrap/join.hpp"
#include "process/ranks.hpp"

namespace paceline {
namespace {

using test::expect_fault;
using test::run_ranks;

constexpr int kRanks = 3;
constexpr std::uint32_t kLast = ~std::uint32_t{0};

Communicator join_near_end(int rank, const std::string& folder, std::uint32_t first,
                           Progress progress = Progress::caller) {
  WorldConfig config;
  config.rank = rank;
  config.ranks = kRanks;
  config.timeout_ms = config.start_timeout_ms = 20000;
  config.progress = progress;
  config.shm_bytes = 4u << 20;
  config.first_number = first;
  return join_world(std::make_shared<FileStore>(folder), config);
}

Call allreduce(std::vector<float>& data, const char* algorithm, int timeout_ms = 0) {
  Call call;
  call.collective = Collective::allreduce;
  call.type = Type::f32;
  call.input = call.output = data.data();
  call.count = data.size();
  call.algorithm = algorithm;
  call.timeout_ms = timeout_ms;
  return call;
}

// Several under way at once, of both kinds, and communicators made in between.
std::string work(Communicator& comm, int turns) {
  for (int turn = 0; turn < turns; ++turn) {
    std::vector<std::vector<float>> data(3, std::vector<float>(500, 1.0f));
    std::vector<Request> requests;
    for (std::size_t i = 0; i < data.size(); ++i)
      requests.push_back(comm.start(allreduce(data[i], i % 2 ? "" : "ring")));
    for (Request& request : requests) request.wait();
    for (const auto& one : data)
      if (one[499] != kRanks) return str("turn ", turn, ": ", one[499]);
    Communicator part = comm.dup();
    std::vector<float> more(10, 1.0f);
    part.run(allreduce(more, ""));
    if (more[9] != kRanks) return str("turn ", turn, ", in a part: ", more[9]);
  }
  return {};
}

TEST_CASE("call numbers: calls go on past the last of 32 bits") {
  for (const Progress progress : {Progress::caller, Progress::thread}) {
    const std::string bad = run_ranks(kRanks, 60, [&](int rank, const std::string& folder) {
      Communicator world = join_near_end(rank, folder, kLast - 9, progress);
      return work(world, 20);
    });
    CHECK_MESSAGE(bad.empty(), bad);
  }
}

// For each place where the numbers may begin anew before the call that fails.
TEST_CASE("call numbers: a time-out past the last one names the right rank and call") {
  for (const std::uint32_t before : {0u, 1u, 2u, 3u}) {
    const std::string bad =
        run_ranks(kRanks, 60, [&](int rank, const std::string& folder) -> std::string {
          Communicator world = join_near_end(rank, folder, kLast - before);
          std::vector<float> data(100, 1.0f);
          for (int i = 0; i < 3; ++i) world.run(allreduce(data, "ring"));
          if (rank == 2) {
            for (const char* other : {"0", "1"}) test::await_note(folder, other);
            return {};
          }
          const std::string bad =
              expect_fault(Fault::timeout, {"rank 2 has last left allreduce #"},
                           [&] { world.run(allreduce(data, "ring", 500)); });
          test::note(folder, str(rank));
          return bad;
        });
    CHECK_MESSAGE(bad.empty(), before, " calls before the last number: ", bad);
  }
}

TEST_CASE("call numbers: a mismatch is found right after the last one") {
  const std::string bad =
      run_ranks(kRanks, 60, [](int rank, const std::string& folder) -> std::string {
        Communicator world = join_near_end(rank, folder, kLast);
        std::vector<float> data(100, 1.0f);
        world.run(allreduce(data, "ring"));
        if (rank == 1) data.resize(50);
        return expect_fault(Fault::mismatch, {"allreduce #1", "rank 1"},
                            [&] { world.run(allreduce(data, "ring")); });
      });
  CHECK_MESSAGE(bad.empty(), bad);
}

}  // namespace
}  // namespace paceline
