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
#include <map>
#include <string>
#include <vector>

#include "bootstrap/join.hpp"
#include "expect_fault.hpp"
#include "runtime/communicator.hpp"
#include "skip.hpp"

namespace paceline::test {

// What watches every access to memory takes time for it, and memory and descriptors of its own.
#if defined(__SANITIZE_THREAD__)
constexpr unsigned kPatience = 10;
#else
constexpr unsigned kPatience = 1;
#endif
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool kHasSanitizer = true;
#else
constexpr bool kHasSanitizer = false;
#endif

// Ranks that are to end by a signal, and by which.
using Ends = std::map<int, int>;

// Empty if a rank has ended as it was to: by that signal, or by itself, and with nothing to tell.
inline std::string wrong_end(int status, int signal) {
  if (WIFSIGNALED(status) && WTERMSIG(status) == signal) return {};
  if (WIFSIGNALED(status)) return str("ended by signal ", WTERMSIG(status));
  const int code = WEXITSTATUS(status);
  if (signal != 0) return str("ended with status ", code, ", and not by signal ", signal);
  return code == 0 ? std::string() : str("ended with status ", code);
}

// Runs body(rank, store folder) in p processes; returns what went wrong on any of them. A rank that
// hangs is ended after `limit_s`, or some times as long, by its own alarm.
inline std::string run_ranks(int p, unsigned limit_s,
                             const std::function<std::string(int, const std::string&)>& body,
                             const Ends& ends = {}) {
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
    const std::string wrong = wrong_end(status, ends.contains(r) ? ends.at(r) : 0);
    if (std::ifstream file(str(folder, "/bad.", r)); file)
      all += std::string(std::istreambuf_iterator<char>(file), {}) + "; ";
    else if (!wrong.empty())
      all += str("rank ", r, " ", wrong, "; ");
  }
  std::filesystem::remove_all(folder);
  return all;
}

// Says to await_note() of other ranks that this one has come so far.
inline void note(const std::string& folder, const std::string& what) {
  std::ofstream(str(folder, "/note.", what));
}

// Returns when the other rank has: no time would be sure to be long enough for it.
inline void await_note(const std::string& folder, const std::string& what) {
  while (!std::filesystem::exists(str(folder, "/note.", what))) usleep(5000);
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
  call.algorithm = "single_copy";
  try {
    return !world.explain(call).empty();
  } catch (const Error&) {
    return false;
  }
}

// Whether it does so between two ranks here; the test that asks is skipped otherwise.
inline bool can_attach() {
  static const bool can = run_ranks(2, 30, [](int rank, const std::string& folder) -> std::string {
                            return is_attached(join(rank, 2, folder)) ? "" : "no";
                          }).empty();
  if (!can) skip("the system copies nothing between processes here");
  return can;
}

}  // namespace paceline::test
