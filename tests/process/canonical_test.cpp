// numbers=canonical on processes: the same bits through every algorithm that claims the order, in
// shared memory, in shared buffers and by messages, and whatever is chosen.
#include <doctest/doctest.h>

#include "base/error.hpp"
#include "bootstrap/join.hpp"
#include "coll/registry.hpp"
#include "process/ranks.hpp"
#include "runtime/shared_memory.hpp"
#include "world/sums.hpp"

namespace paceline {
namespace {

using test::Case;
using test::run_ranks;
using test::SumBuffers;

Communicator join_with(bool canonical, int rank, int ranks, const std::string& folder) {
  WorldConfig config;
  config.rank = rank;
  config.ranks = ranks;
  config.timeout_ms = config.start_timeout_ms = 20000;
  config.progress = Progress::caller;
  config.shm_bytes = 4u << 20;
  config.numbers = canonical ? Numbers::canonical : Numbers::stable;
  return join_world(std::make_shared<FileStore>(folder), config);
}

// All sums of the algorithms that claim the order; those over shared buffers in these.
std::string run_all(Communicator& world, bool claimed) {
  const auto in = world.allocate(1u << 20), out = world.allocate(1u << 20);
  std::string first;
  int right = 0;
  for (const Algorithm* a : registry()) {
    // Mixed: the ranks share a node. In order of arrival: refused.
    if (a->can_be_canonical() != claimed || a->by_nodes() || a->claims()) continue;
    test::for_each_sum(*a, world.size(), [&](const Case& c, Type type) {
      SumBuffers sums(c, type, world.rank());
      if (a->uses(Access::symmetric))
        sums.use(reinterpret_cast<unsigned char*>(in->data()),
                 reinterpret_cast<unsigned char*>(out->data()));
      world.run(sums.call());
      const std::string bad = sums.check();
      right += bad.empty();
      if (first.empty()) first = bad;
    });
  }
  return first.empty() && right == 0 ? "nothing was tried" : first;
}

std::string run_chosen(Communicator& world) {
  for (const Collective collective :
       {Collective::allreduce, Collective::reduce, Collective::reduce_scatter})
    for (const std::size_t count : {2, 900, 5000, 30000, 200000})
      for (const Type type : {Type::f32, Type::bf16}) {
        const Case c{collective, "", world.size(), count, 0};
        SumBuffers sums(c, type, world.rank());
        world.run(sums.call());
        if (std::string bad = sums.check(); !bad.empty()) return bad;
      }
  return {};
}

TEST_CASE("canonical: bit for bit between processes, through every algorithm that claims it") {
  for (const int p : {1, 2, 3, 5, 8}) {
    const std::string bad = run_ranks(p, 60, [&](int rank, const std::string& folder) {
      Communicator world = join_with(true, rank, p, folder);
      const std::string wrong = run_all(world, true);
      return wrong.empty() ? run_chosen(world) : wrong;
    });
    CHECK_MESSAGE(bad.empty(), "p = " << p << ": " << bad);
  }
}

TEST_CASE("mutants: without the option the other algorithms run, and have other bits") {
  const std::string bad = run_ranks(3, 60, [&](int rank, const std::string& folder) {
    Communicator world = join_with(false, rank, 3, folder);
    return run_all(world, false).find("in rank order") == std::string::npos ? "no other bits"
                                                                            : std::string();
  });
  CHECK_MESSAGE(bad.empty(), bad);
}

TEST_CASE("canonical on one rank and stable on another: both are told at the start") {
  const std::string bad = run_ranks(2, 60, [&](int rank, const std::string& folder) -> std::string {
    try {
      join_with(rank == 1, rank, 2, folder);
    } catch (const Error& error) {
      const std::string what = error.what();
      const char* wanted = "numbers differs between ranks (rank 0: stable, rank 1: canonical)";
      return what.find(wanted) == what.npos ? what : "";
    }
    return "no error";
  });
  CHECK_MESSAGE(bad.empty(), bad);
}

}  // namespace
}  // namespace paceline
