#include "runtime/diagnostics/record_signal.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "runtime/progress/session.hpp"

namespace paceline {
namespace {

// Data of the signal handler: a pipe that the thread reads, and the previous handlers. A child of
// fork() inherits the handler, so `before` outlives the fork; pipe and thread do not.
int bell[2] = {-1, -1};
pid_t owner = 0;
bool is_handled[_NSIG];
struct sigaction before[_NSIG];

struct Asked {
  std::mutex mutex;
  std::vector<std::pair<std::string, std::weak_ptr<Session>>> sessions;
};
Asked* all = nullptr;   // never destroyed, since the thread may use it until the process ends

// Runs in the child of a fork: the parent's thread reads the pipe, and may have held the mutex.
void forget() {
  all = new Asked;
  owner = 0;
  for (int& end : bell) {
    if (end >= 0) close(end);
    end = -1;
  }
}

Asked& asked() {
  static std::once_flag once;
  std::call_once(once, [] {
    all = new Asked;
    pthread_atfork(nullptr, nullptr, forget);
  });
  return *all;
}

void ring(int signal, siginfo_t* info, void* context) {
  const int kept = errno;
  if (getpid() == owner && ::write(bell[1], "r", 1) < 0) {
  }
  const struct sigaction& old = before[signal];
  if (old.sa_flags & SA_SIGINFO) old.sa_sigaction(signal, info, context);
  else if (old.sa_handler != SIG_DFL && old.sa_handler != SIG_IGN) old.sa_handler(signal);
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

// Installs the handler once per signal, even across forks: installed twice, it would be its own
// predecessor and call itself.
void handle(int signal) {
  if (signal >= 1 && signal < _NSIG && is_handled[signal]) return;
  struct sigaction ours {}, old {};
  ours.sa_sigaction = ring;
  ours.sa_flags = SA_SIGINFO | SA_RESTART;
  if (sigaction(signal, nullptr, &old) == 0 && signal < _NSIG) before[signal] = old;
  if (sigaction(signal, &ours, nullptr) != 0)
    fail(Fault::usage, "start-up: signal ", signal, " cannot be handled (", std::strerror(errno),
         "); set PACELINE_RECORD_SIGNAL to another, such as ", SIGUSR2, ".");
  is_handled[signal] = true;
}

void begin(int signal) {
  handle(signal);
  if (pipe2(bell, O_CLOEXEC) != 0)
    fail(Fault::resource, "start-up: no pipe for flight records: ", std::strerror(errno), ".");
  owner = getpid();
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
