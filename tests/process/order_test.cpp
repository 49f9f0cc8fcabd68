// Ranks that pass the same values in another order do not go on with wrong data.
#include <chrono>
#include <thread>
#include <vector>

#include "bootstrap/join.hpp"
#include "process/ranks.hpp"

using namespace paceline;
using test::expect_fault;
using test::join;
using test::run_ranks;

namespace {

// Which way messages travel decides where fingerprints meet: through stages, or in headers.
const std::vector<std::string> kWays{"", "ring"};

int own_rank = 0;   // of this process

// As slow as one whose thread waits for Python's lock.
std::string call_site() {
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  return str("place ", own_rank);
}

}  // namespace

TEST_CASE("uneven counts in another order are a mismatch on both ranks") {
  for (const Collective collective : {Collective::allgather, Collective::reduce_scatter})
    for (const std::string& way : kWays) {
      const std::string bad =
          run_ranks(2, 30, [&](int rank, const std::string& folder) -> std::string {
            Communicator world = join(rank, 2, folder, 5000);
            std::vector<float> in(8), out(8);
            Call call{.collective = collective, .type = Type::f32, .op = Op::sum};
            call.input = in.data();
            call.output = out.data();
            call.uneven = true;
            call.counts = {3, 5};
            if (rank == 1) std::swap(call.counts[0], call.counts[1]);
            call.algorithm = way;
            return expect_fault(
                Fault::mismatch,
                {"the counts differ between rank 0 and rank 1", "in the same order"},
                [&] { world.run(call); });
          });
      CHECK_MESSAGE(bad.empty(), name_of(collective), " ", way, ": ", bad);
    }
}

TEST_CASE("a subgroup whose ranks are in another order is an error on both") {
  for (const std::string& way : kWays) {
    const std::string bad =
        run_ranks(2, 30, [&](int rank, const std::string& folder) -> std::string {
          Communicator world = join(rank, 2, folder, 5000);
          Communicator part = world.subgroup(rank ? std::vector{1, 0} : std::vector{0, 1}, 7);
          std::vector<float> in(64), out(128);
          Call call{.collective = Collective::allgather, .type = Type::f32};
          call.input = in.data();
          call.output = out.data();
          call.count = 64;
          call.algorithm = way;
          return expect_fault(Fault::mismatch, {"in a subgroup differs"},
                              [&] { part.run(call); });
        });
    CHECK_MESSAGE(bad.empty(), way, ": ", bad);
  }
}

TEST_CASE("all threads of a rank name its call site, not only the one that tells it") {
  const std::string bad = run_ranks(2, 30, [](int rank, const std::string& folder) -> std::string {
    WorldConfig config;
    config.rank = own_rank = rank;
    config.ranks = 2;
    config.timeout_ms = 5000;
    config.call_site = call_site;
    Communicator world = join_world(std::make_shared<FileStore>(folder), config);
    std::vector<float> in(8), first(8), second(8);
    Call call{.collective = Collective::allreduce, .type = Type::f32, .op = Op::sum};
    call.input = in.data();
    call.count = rank == 0 ? 7 : 8;
    call.output = first.data();
    Request one = world.start(call);
    call.output = second.data();
    std::string meanwhile;
    std::thread other([&] {
      meanwhile = expect_fault(Fault::mismatch, {str("rank ", rank, " at place ", rank)},
                               [&] { world.start(call).wait(); });
    });
    const std::string bad = expect_fault(
        Fault::mismatch, {str("rank ", rank, " at place ", rank)}, [&] { one.wait(); });
    other.join();
    return bad + meanwhile;
  });
  CHECK_MESSAGE(bad.empty(), bad);
}
