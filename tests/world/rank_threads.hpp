// Ranks as threads, whose sessions have threads of their own that make progress.
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/str.hpp"
#include "bootstrap/open_world.hpp"
#include "expect_fault.hpp"
#include "loop/loop.hpp"

namespace paceline::test {

// Calls `live` on every rank of a world; what went wrong. `nodes`: of each rank; empty: one node.
inline std::string run_ranks(int ranks, const std::function<void(int, Communicator)>& live,
                             const std::vector<int>& nodes = {}) {
  LoopNet net(ranks, {});
  WorldConfig config;
  config.nodes = nodes;
  config.progress = Progress::thread;
  config.timeout_ms = 60000;
  std::vector<std::string> trouble(static_cast<std::size_t>(ranks));
  std::vector<Communicator> worlds;
  for (int rank = 0; rank < ranks; ++rank)
    worlds.push_back(join_transport(net.endpoint(rank), config));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      const auto place = static_cast<std::size_t>(rank);
      try {
        live(rank, worlds[place]);
      } catch (const std::exception& error) {
        trouble[place] = str("rank ", rank, ": ", error.what(), "; ");
      }
    });
  for (std::thread& thread : threads) thread.join();
  std::string all;
  for (const std::string& one : trouble) all += one;
  return all;
}

// Makes `call`, which fails on rank 1 by a usage error with these words, and tells rank 0 of it.
// Throws if it does not.
inline void expect_told(int rank, const std::string& own, std::vector<std::string> heard,
                        const std::function<void()>& call) {
  heard.push_back("rank 1");
  const std::string wrong = rank == 1 ? expect_fault(Fault::usage, {own}, call)
                                      : expect_fault(Fault::lost, heard, call);
  if (!wrong.empty()) fail(Fault::internal, wrong);
}

}  // namespace paceline::test
