// Ranks that reach each other's buffers through XPMEM, or what stands for it here (tests/fakes/).
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

#include "fakes/xpmem.hpp"
#include "process/answer_call.hpp"
#include "process/ranks.hpp"
#include "runtime/options_config.hpp"

namespace paceline {
namespace {

using test::answer_call;
using test::expect_fault;
using test::fake_windows_made;
using test::FileMemory;
using test::kDenied;
using test::run_ranks;

constexpr std::size_t kLong = 9u << 20;   // bytes, more than from where on it is chosen

Communicator join(int rank, const std::string& folder, const char* wish) {
  setenv("PACELINE_ATTACH", wish, 1);
  WorldConfig config = config_from_options();
  config.rank = rank;
  config.ranks = 2;
  return join_world(std::make_shared<FileStore>(folder), config);
}

Call broadcast_of(const FileMemory& data, int root) {
  Call call;
  call.collective = Collective::broadcast;
  call.output = data.data();
  call.count = kLong;
  call.root = root;
  return call;
}

// From each root; the buffers are the same ones each time.
std::string broadcast_twice(Communicator& world) {
  const FileMemory data(kLong);
  for (int turn = 0; turn < 4; ++turn) {
    const auto filling = [&](std::size_t i) { return std::byte(i * 7 + i / 4096 + turn * 31u); };
    const int root = turn % 2;
    if (world.rank() == root)
      for (std::size_t i = 0; i < kLong; ++i) data.data()[i] = filling(i);
    world.run(broadcast_of(data, root));
    for (std::size_t i = 0; i < kLong; ++i)
      if (data.data()[i] != filling(i)) return str("rank ", world.rank(), ": byte ", i);
  }
  return {};
}

std::string how(const Communicator& world) {
  const FileMemory data(kLong);
  return world.explain(broadcast_of(data, 0));
}

bool has_fake() {
  const bool has = test::fake_windows() >= 0;
  CHECK_MESSAGE(has, "run by ctest, which sets LD_LIBRARY_PATH");
  return has;
}

}  // namespace

TEST_CASE("xpmem: used where a rank asks for it, also where the system copies nothing") {
  if (!has_fake()) return;
  for (const char* wish : {"xpmem", "auto"}) {
    const std::string bad = run_ranks(2, 60, [&](int rank, const std::string& folder) {
      if (rank == 1) answer_call(SYS_process_vm_readv, kDenied);
      Communicator world = join(rank, folder, rank == 0 ? "xpmem" : wish);
      const int made = fake_windows_made();
      const std::string told = how(world);
      if (!told.starts_with("attached") || told.find("by XPMEM") == told.npos) return told;
      std::string bad = broadcast_twice(world);
      if (bad.empty() && fake_windows_made() == made) bad = "no window has been made";
      return bad;
    });
    CHECK_MESSAGE(bad.empty(), bad);
  }
}

TEST_CASE("xpmem: where one rank wants something else, all do that, and know why") {
  if (!has_fake()) return;
  struct Row {
    const char *one, *other, *told;
  };
  const Row rows[] = {
      {"xpmem", "off", "PACELINE_ATTACH=xpmem on rank 0, and rank 1 has no XPMEM"},
      {"cma", "xpmem", "PACELINE_ATTACH=xpmem on rank 1, and rank 0 has no XPMEM"},
      {"cma", "auto", "by cross-memory attach"},
  };
  for (const Row& row : rows) {
    const std::string bad = run_ranks(2, 60, [&](int rank, const std::string& folder) {
      Communicator world = join(rank, folder, rank == 0 ? row.one : row.other);
      const std::string told = how(world);
      return told.find(row.told) == told.npos ? told : broadcast_twice(world);
    });
    CHECK_MESSAGE(bad.empty(), bad);
  }
}

TEST_CASE("xpmem: where one rank cannot map the others' memory, none does") {
  if (!has_fake()) return;
  const std::string bad = run_ranks(2, 60, [&](int rank, const std::string& folder) {
    if (rank == 1) setenv("FAKE_XPMEM", "blind", 1);
    Communicator world = join(rank, folder, rank == 0 ? "xpmem" : "auto");
    const std::string told = how(world);
    return told.find("and rank 1 may not map the memory of rank 0: Permission denied") == told.npos
               ? told : broadcast_twice(world);
  });
  CHECK_MESSAGE(bad.empty(), bad);
}

TEST_CASE("xpmem: left to itself, ranks agree on one way") {
  if (!has_fake()) return;
  const std::string bad = run_ranks(2, 60, [&](int rank, const std::string& folder) {
    Communicator world = join(rank, folder, "auto");
    const std::string told = how(world);
    std::byte both[2] = {};
    std::byte own{told.find("by XPMEM") == told.npos ? std::byte{1} : std::byte{2}};
    Call call;
    call.collective = Collective::allgather;
    call.input = &own;
    call.output = both;
    call.count = 1;
    world.run(call);
    if (both[0] != both[1]) return str("rank ", rank, " has ", told);
    return broadcast_twice(world);
  });
  CHECK_MESSAGE(bad.empty(), bad);
}

TEST_CASE("xpmem: a buffer that has lost its pages is an error that names its rank") {
  if (!has_fake()) return;
  const std::string bad = run_ranks(2, 60, [&](int rank, const std::string& folder) {
    Communicator world = join(rank, folder, "xpmem");
    const FileMemory data(kLong);
    const Call call = broadcast_of(data, 0);
    world.run(call);
    const FileMemory lost(kLong);
    if (rank == 1 && !lost.lose()) return std::string("it has them");
    const Call again = rank == 1 ? broadcast_of(lost, 0) : call;
    return expect_fault(Fault::resource, {"the buffer of rank", "Bad address"},
                        [&] { world.run(again); });
  });
  CHECK_MESSAGE(bad.empty(), bad);
}

}  // namespace paceline
