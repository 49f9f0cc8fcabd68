#include "process/ranks.hpp"

#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace paceline::test {
namespace {

// Empty if a rank has ended as it was to: by that signal, or by itself, and with nothing to tell.
std::string wrong_end(int status, int signal) {
  if (WIFSIGNALED(status) && WTERMSIG(status) == signal) return {};
  if (WIFSIGNALED(status)) return str("ended by signal ", WTERMSIG(status));
  const int code = WEXITSTATUS(status);
  if (signal != 0) return str("ended with status ", code, ", and not by signal ", signal);
  return code == 0 ? std::string() : str("ended with status ", code);
}

}  // namespace

std::string run_ranks(int p, unsigned limit_s,
                      const std::function<std::string(int, const std::string&)>& body,
                      const Ends& ends) {
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

void note(const std::string& folder, const std::string& what) {
  std::ofstream(str(folder, "/note.", what));
}

void await_note(const std::string& folder, const std::string& what) {
  while (!std::filesystem::exists(str(folder, "/note.", what))) usleep(5000);
}

Communicator join(int rank, int ranks, const std::string& folder, int timeout_ms,
                  Progress progress) {
  WorldConfig config;
  config.rank = rank;
  config.ranks = ranks;
  config.timeout_ms = timeout_ms;
  config.start_timeout_ms = 20000;
  config.progress = progress;
  config.shm_bytes = 4u << 20;
  return join_world(std::make_shared<FileStore>(folder), config);
}

bool is_attached(const Communicator& world) {
  Call call;
  call.collective = Collective::broadcast;
  call.algorithm = "single_copy";
  try {
    return !world.explain(call).empty();
  } catch (const Error&) {
    return false;
  }
}

bool can_attach() {
  static const bool can = run_ranks(2, 30, [](int rank, const std::string& folder) -> std::string {
                            return is_attached(join(rank, 2, folder)) ? "" : "no";
                          }).empty();
  if (!can) skip("the system copies nothing between processes here");
  return can;
}

}  // namespace paceline::test
