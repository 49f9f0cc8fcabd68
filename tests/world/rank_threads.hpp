// Ranks as threads, whose sessions have threads of their own that make progress.
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/str.hpp"
#include "runtime/progress/session.hpp"
#include "transport/loop/loop.hpp"

namespace paceline::test {

// Calls `live` on every rank of a world; what went wrong.
inline std::string run_ranks(int ranks, const std::function<void(int, Communicator)>& live) {
  LoopNet net(ranks, {});
  WorldConfig config;
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

}  // namespace paceline::test
