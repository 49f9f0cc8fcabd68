// Ranks that start unlike each other: the first difference is named, on all of them, at once.
#include <functional>
#include <memory>

#include "process/ranks.hpp"

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
  CHECK(starts_unlike([](WorldConfig& c) { c.segments = 2; },
                      {"option segments differs", "rank 0: 0, rank 1: 2"}) == "");
  CHECK(starts_unlike([](WorldConfig& c) { c.huge_pages = true; },
                      {"option huge_pages differs", "rank 0: off, rank 1: on", "of a node"}) == "");
}
