// Groups of ranks that share a node, pretended by an option: what is chosen, and what comes out, to
// the bit.
#include <doctest/doctest.h>

#include <cstdlib>

#include "process/ranks.hpp"
#include "runtime/bootstrap/options_config.hpp"
#include "world/collective_case.hpp"

namespace paceline {
namespace {

using test::Buffers;
using test::Case;
using test::run_ranks;

constexpr int kRanks = 4;

Communicator join_groups(int rank, const std::string& folder, const char* groups) {
  setenv("PACELINE_NUMA_RANKS", groups, 1);
  WorldConfig config = config_from_options();
  config.rank = rank;
  config.ranks = kRanks;
  config.progress = Progress::caller;
  config.timeout_ms = 20000;
  return join_world(std::make_shared<FileStore>(folder), config);
}

float term(int rank, std::size_t i) {
  return 1.0f / static_cast<float>(3 + rank * 7 + static_cast<int>(i % 1013));
}

// What all ranks together make of it, added in the order that the algorithm promises.
std::string add(Communicator& world, const std::vector<int>& order) {
  const std::size_t count = 100003;
  std::vector<float> mine(count), sum(count);
  for (std::size_t i = 0; i < count; ++i) mine[i] = term(world.rank(), i);
  Call call;
  call.collective = Collective::allreduce;
  call.type = Type::f32;
  call.input = mine.data();
  call.output = sum.data();
  call.count = count;
  if (world.explain(call).find("numa") != 0) return world.explain(call);
  world.run(call);
  for (std::size_t i = 0; i < count; ++i) {
    const auto of = [&](int at) { return term(order[std::size_t(at)], i); };
    const float near = of(0) + of(1), far = of(2) + of(3);
    if (sum[i] != near + far) return str("element ", i, " is ", sum[i], ", not ", near + far);
  }
  return {};
}

TEST_CASE("groups of two: every collective, and sums to the bit") {
  const std::string bad =
      run_ranks(kRanks, 60, [&](int rank, const std::string& folder) -> std::string {
        Communicator world = join_groups(rank, folder, "2");
        for (Collective c : {Collective::allreduce, Collective::broadcast, Collective::reduce,
                             Collective::reduce_scatter, Collective::allgather})
          for (int root : {0, 3})
            for (bool in_place : {false, true}) {
              const Case one{c, "", kRanks, 70001, has_root(c) ? root : 0, in_place};
              for (int turn = 0; turn < 3; ++turn) {
                Buffers<float> data(one, rank);
                const Call call = data.call();
                if (world.explain(call).find("numa") != 0) return world.explain(call);
                world.run(call);
                if (std::string wrong = data.check(); !wrong.empty()) return wrong;
              }
            }
        if (std::string wrong = add(world, {0, 1, 2, 3}); !wrong.empty()) return wrong;
        // Ranks 0 2 1 3: groups 0 1 0 1, in which position 0 is with 2 and 1 with 3.
        const int keys[] = {0, 2, 1, 3};
        Communicator turned = world.split(0, keys[rank]);
        if (std::string wrong = add(turned, {0, 2, 1, 3}); !wrong.empty()) return wrong;
        // Two ranks of different groups, and two of one, are no groups.
        Communicator half = world.split(rank % 2, rank);
        Call call;
        call.collective = Collective::allgather;
        call.count = 100000;
        std::vector<std::byte> in(call.count), out(2 * call.count);
        call.input = in.data();
        call.output = out.data();
        const std::string why = half.explain(call);
        return why.find("staged") == 0 && why.find("no groups") != why.npos ? "" : why;
      });
  CHECK_MESSAGE(bad.empty(), bad);
}

TEST_CASE("groups: off is off, and ranks that want different ones are told at start-up") {
  const std::string bad =
      run_ranks(kRanks, 60, [&](int rank, const std::string& folder) -> std::string {
        Communicator world = join_groups(rank, folder, "1");
        std::vector<float> data(100000);
        Call call;
        call.collective = Collective::allreduce;
        call.type = Type::f32;
        call.input = call.output = data.data();
        call.count = data.size();
        const std::string why = world.explain(call);
        if (why.find("two_shot") != 0 || why.find("PACELINE_NUMA_RANKS=1") == why.npos) return why;
        world.run(call);
        return {};
      });
  CHECK_MESSAGE(bad.empty(), bad);
  const std::string told =
      run_ranks(kRanks, 60, [&](int rank, const std::string& folder) -> std::string {
        try {
          join_groups(rank, folder, rank == 3 ? "4" : "2");
        } catch (const Error& error) {
          const std::string text = error.what();
          return text.find("numa_ranks differs between ranks (rank 0: 2, rank 3: 4)") != text.npos
                     ? ""
                     : text;
        }
        return "nobody noticed";
      });
  CHECK_MESSAGE(told.empty(), told);
}

}  // namespace
}  // namespace paceline
