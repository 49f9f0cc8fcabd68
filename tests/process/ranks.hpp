// Ranks as processes, forked by a test, that find each other by a folder.
#pragma once

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "expect_fault.hpp"
#include "runtime/communicator.hpp"

namespace paceline::test {

// What watches every access to memory takes time for it.
#if defined(__SANITIZE_THREAD__)
constexpr unsigned kPatience = 10;
#else
constexpr unsigned kPatience = 1;
#endif

// Runs body(rank, store folder) in p processes; returns what went wrong on any of them. A rank that
// hangs is ended after `limit_s`, or some times as long, by its own alarm.
inline std::string run_ranks(int p, unsigned limit_s,
                             const std::function<std::string(int, const std::string&)>& body) {
  char folder[] = "/tmp/paceline-test-XXXXXX";
  if (!mkdtemp(folder)) return "no folder for the store";
  std::vector<pid_t> ranks;
  for (int r = 0; r < p; ++r) {
    const pid_t pid = fork();
    if (pid > 0) {
      ranks.push_back(pid);
      continue;
    }
    alarm(kPatience * limit_s);
    std::string bad;
    try {
      bad = body(r, folder);
    } catch (const std::exception& error) {
      bad = str("rank ", r, " threw: ", error.what());
    }
    if (!bad.empty()) std::ofstream(str(folder, "/bad.", r)) << bad;
    _exit(bad.empty() ? 0 : 1);
  }
  std::string all;
  for (int r = 0; r < p; ++r) {
    int status = 0;
    waitpid(ranks[std::size_t(r)], &status, 0);
    if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)
      all += str("rank ", r, " ended by signal ", WTERMSIG(status), "; ");
    if (std::ifstream file(str(folder, "/bad.", r)); file)
      all += std::string(std::istreambuf_iterator<char>(file), {}) + "; ";
  }
  std::filesystem::remove_all(folder);
  return all;
}

inline Communicator join(int rank, int ranks, const std::string& folder, int timeout_ms = 20000,
                  Progress progress = Progress::caller) {
  WorldConfig config;
  config.rank = rank;
  config.ranks = ranks;
  config.timeout_ms = timeout_ms;
  config.start_timeout_ms = 20000;
  config.progress = progress;
  config.shm_bytes = 4u << 20;
  return join_world(std::make_shared<FileStore>(folder), config);
}

// Whether the system copies between the memory of these ranks, which it need not.
inline bool is_attached(const Communicator& world) {
  Call call;
  call.collective = Collective::broadcast;
  call.algorithm = "attached";
  try {
    return !world.explain(call).empty();
  } catch (const Error&) {
    return false;
  }
}

}  // namespace paceline::test
