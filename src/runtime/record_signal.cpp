#include "runtime/record_signal.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "runtime/session.hpp"

namespace paceline {
namespace {

// All that a handler may touch: a pipe that the thread reads, and what was there before.
int bell[2] = {-1, -1};
pid_t owner = 0;
struct sigaction before;

struct Asked {
  std::mutex mutex;
  std::vector<std::pair<std::string, std::weak_ptr<Session>>> sessions;
};
Asked& asked() {
  static Asked* const all = new Asked;   // outlives whoever ends the process
  return *all;
}

// A child of fork() has the pipe, and no thread that reads it.
void ring(int signal, siginfo_t* info, void* context) {
  const int kept = errno;
  if (getpid() == owner && ::write(bell[1], "r", 1) < 0) {
  }
  if (before.sa_flags & SA_SIGINFO) before.sa_sigaction(signal, info, context);
  else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) before.sa_handler(signal);
  errno = kept;
}

void write_all(int signal) {
  const std::lock_guard lock(asked().mutex);
  for (const auto& [folder, session] : asked().sessions)
    if (const auto held = session.lock())
      write_record(held->record(str("asked for by signal ", signal)), folder);
}

void listen(int signal) {
  char letter;
  while (read(bell[0], &letter, 1) == 1) write_all(signal);
}

void begin(int signal) {
  if (pipe2(bell, O_CLOEXEC) != 0)
    fail(Fault::resource, "start-up: no pipe for flight records: ", std::strerror(errno), ".");
  owner = getpid();
  struct sigaction ours {};
  ours.sa_sigaction = ring;
  ours.sa_flags = SA_SIGINFO | SA_RESTART;
  if (sigaction(signal, &ours, &before) != 0)
    fail(Fault::usage, "start-up: signal ", signal, " cannot be handled (", std::strerror(errno),
         "); set PACELINE_RECORD_SIGNAL to another, such as ", SIGUSR2, ".");
  std::thread(listen, signal).detach();
}

}  // namespace

void record_on_signal(int signal, const std::string& folder,
                      const std::weak_ptr<Session>& session) {
  if (signal == 0 || folder.empty()) return;
  const std::lock_guard lock(asked().mutex);
  if (owner != getpid()) {
    asked().sessions.clear();
    begin(signal);
  }
  std::erase_if(asked().sessions, [](const auto& one) { return one.second.expired(); });
  asked().sessions.emplace_back(folder, session);
}

}  // namespace paceline
