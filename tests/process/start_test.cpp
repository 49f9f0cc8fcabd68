// Ranks that start unlike each other: the first difference is named, on all of them, at once.
#include <sched.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>

#include "bootstrap/join.hpp"
#include "bootstrap/open_world.hpp"
#include "process/ranks.hpp"
#include "transport/bootstrap.hpp"
#include "transport/shm/shm.hpp"

using namespace paceline;
using test::expect_fault;
using test::run_ranks;

namespace {

// Three ranks of which one has changed something; nobody waits for the time-out of the start.
std::string starts_unlike(const std::function<void(WorldConfig&)>& change,
                          const std::vector<std::string>& words) {
  return run_ranks(3, 15, [&](int rank, const std::string& folder) -> std::string {
    WorldConfig config;
    config.rank = rank;
    config.ranks = 3;
    config.start_timeout_ms = 60000;
    config.shm_bytes = 4u << 20;
    if (rank == 1) change(config);
    return expect_fault(Fault::usage, words, [&] {
      join_world(std::make_shared<FileStore>(folder), config);
    });
  });
}

}  // namespace

TEST_CASE("a transport that differs is named on all ranks") {
  CHECK(starts_unlike([](WorldConfig& c) { c.only_mpi = true; },
                      {"start-up: option transport differs between ranks (rank 0: auto, rank 1: "
                       "mpi); all ranks must have the same. PACELINE_TRANSPORT sets it."}) == "");
  CHECK(starts_unlike([](WorldConfig& c) { c.only_shm = true; },
                      {"option transport differs", "rank 0: auto, rank 1: shm"}) == "");
}

TEST_CASE("an option that differs is named on all ranks, before anything it would spoil") {
  CHECK(starts_unlike([](WorldConfig& c) { c.cut.segments = 2; },
                      {"option segments differs", "rank 0: 0, rank 1: 2"}) == "");
  CHECK(starts_unlike([](WorldConfig& c) { c.cut.segment_bytes = 2; },
                      {"option segments differs", "rank 0: 0, rank 1: 2B"}) == "");
  CHECK(starts_unlike([](WorldConfig& c) { c.huge_pages = true; },
                      {"option huge_pages differs", "rank 0: off, rank 1: on", "of a node"}) == "");
}

// As where the user presses ^C: what the rank waits for ends, and its memory holds nobody up.
TEST_CASE("a start ends when WorldConfig::idle throws, also while ranks attach memory") {
  constexpr int kPartly = 1;   // its rank meets, and shows nothing
  const std::string bad = run_ranks(2, 30, [](int rank, const std::string& folder) -> std::string {
    FileStore store(folder);
    StoreBootstrap meeting(store, "world", rank, 2, std::chrono::seconds(20));
    WorldConfig config;
    config.rank = rank;
    config.ranks = 2;
    config.start_timeout_ms = 60000;
    config.shm_bytes = 4u << 20;
    if (rank != kPartly) config.idle = [] { throw std::runtime_error("enough"); };
    auto near = make_shm(meeting, {config.shm_dir, config.shm_bytes, config.stage_bytes, {}, "off",
                                   config.stopped_ms});
    if (rank == kPartly) {
      const Communicator held = join_transport(std::move(near), config);
      (void)store.get("over", std::chrono::seconds(25));
      return "";
    }
    std::string said;
    try {
      join_transport(std::move(near), config, true);
    } catch (const std::runtime_error& error) {
      said = error.what();
    }
    store.set("over", "");
    return said == "enough" ? "" : str("it has said '", said, "'");
  });
  CHECK(bad == "");
}

TEST_CASE("ranks of a machine without a name, or with blanks in it, start") {
  for (const std::string& name : {std::string(), std::string("a b")}) {
    const std::string bad = run_ranks(2, 30, [&](int rank, const std::string& folder) {
      if (unshare(CLONE_NEWUTS) != 0 || sethostname(name.c_str(), name.size()) != 0)
        return std::string("not allowed");
      Communicator world = test::join(rank, 2, folder);
      world.run({.collective = Collective::barrier});
      return std::string();
    });
    if (bad.find("not allowed") != bad.npos) return test::skip("only root can name a machine");
    CHECK_MESSAGE(bad.empty(), "'", name, "': ", bad);
  }
}

// Joins once all ranks come to the same try, which the slowest comes to last.
std::string join_at_last(int rank, int ranks, const std::string& folder, int limit_ms,
                         const std::function<void(int tries)>& failed) {
  WorldConfig config;
  config.rank = rank;
  config.ranks = ranks;
  config.start_timeout_ms = limit_ms;
  config.shm_bytes = 4u << 20;
  for (int tries = 1; tries <= 8; ++tries) {
    try {
      Communicator world = join_again(std::make_shared<FileStore>(folder), config, "here");
      int sum = 1;
      world.run({.collective = Collective::allreduce, .type = Type::i32, .input = &sum,
                 .output = &sum, .count = 1});
      return sum == ranks ? "" : "the sum is wrong";
    } catch (const Error& error) {
      if (error.fault() != Fault::timeout) throw;
      failed(tries);
    }
  }
  return str("rank ", rank, " has not met the others in 8 tries");
}

TEST_CASE("ranks that give up and try again meet one that is late, however often they did") {
  const std::string bad = run_ranks(3, 60, [](int rank, const std::string& folder) -> std::string {
    if (rank == 2) {
      test::await_note(folder, "tried");
      return join_at_last(rank, 3, folder, 30000, [](int) {});
    }
    return join_at_last(rank, 3, folder, rank == 0 ? 700 : 1600, [&](int tries) {
      if (rank == 0 && tries == 3) test::note(folder, "tried");
    });
  });
  CHECK_MESSAGE(bad.empty(), bad);
}

TEST_CASE("where those that gave up do not come again, a late rank says that they did") {
  const std::string bad = run_ranks(2, 60, [](int rank, const std::string& folder) -> std::string {
    WorldConfig config;
    config.rank = rank;
    config.ranks = 2;
    config.start_timeout_ms = 500;
    if (rank == 1) test::await_note(folder, "tried");
    const std::string bad = expect_fault(
        Fault::timeout,
        {"no rank set", rank == 1 ? "Before that: start-up: rank 0 has given up" : "world/0/1"},
        [&] { join_again(std::make_shared<FileStore>(folder), config, "here"); });
    if (rank == 0) test::note(folder, "tried");
    return bad;
  });
  CHECK_MESSAGE(bad.empty(), bad);
}

// Descriptors are few: with the usual limit of 1024 hundreds of ranks of a node are to start.
TEST_CASE("a starting rank holds one descriptor for each peer's process, and none for its memory") {
  constexpr int kRanks = 4;
  const std::string bad = run_ranks(kRanks, 30, [](int rank, const std::string& folder) {
    const auto count = [] {
      const auto files = std::filesystem::directory_iterator("/proc/self/fd");
      return static_cast<int>(std::distance(begin(files), end(files)));
    };
    FileStore store(folder);
    StoreBootstrap meeting(store, "world", rank, kRanks, std::chrono::seconds(20));
    const std::vector<std::string> ids = meeting.allgather(std::to_string(getpid()));
    const int before = count();
    for (int peer = 0; peer < kRanks; ++peer)
      if (peer != rank) meeting.know(peer, std::stoi(ids[std::size_t(peer)]));
    const int known = count();
    if (known > before + kRanks - 1) return str(known - before, " to know ", kRanks - 1, " peers");
    const auto near = make_shm(meeting, {.bytes = 4u << 20, .single_copy = "off"});
    const int more = count() - known;   // its own first stage
    return more > 1 ? str(more, " more with the memory of all") : std::string();
  });
  CHECK(bad == "");
}
