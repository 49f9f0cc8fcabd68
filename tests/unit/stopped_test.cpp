// Stopped: processes that count as stopped, and the time for which they are.
#include "transport/shm/stopped.hpp"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.hpp"

namespace paceline {
namespace {

bool is_stopped(int process) { return halt_of(process, Freezers("")) == Halt::signal; }

// A child that stops itself, traced by this process or not, under any name.
struct Child {
  explicit Child(bool traced) : id(fork()) {
    if (id == 0) {
      prctl(PR_SET_NAME, "T) (R");   // a name that misleads readers of the state
      if (traced) ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
      raise(SIGSTOP);
      while (true) pause();
    }
    int status = 0;
    waitpid(id, &status, WUNTRACED);
  }
  ~Child() {
    kill(id, SIGKILL);
    waitpid(id, nullptr, 0);
  }
  Child(const Child&) = delete;
  const pid_t id;
};

TEST_CASE("a process that a signal has stopped") {
  const Child child(false);
  CHECK(is_stopped(child.id));
  kill(child.id, SIGCONT);
  for (int tries = 0; tries < 1000 && is_stopped(child.id); ++tries) usleep(1000);
  CHECK(!is_stopped(child.id));
}

TEST_CASE("a process that a debugger holds is not stopped, and neither is one that works") {
  const Child child(true);
  CHECK(!is_stopped(child.id));
  CHECK(!is_stopped(getpid()));
  CHECK(!is_stopped(1 << 30));
}

// Looks at all that is due in `looks` steps of `step_ms`; the step at which the limit was passed.
int passes(int limit_ms, int step_ms, int looks, int process) {
  Stopped stopped(2, limit_ms);
  Stopped::Clock::time_point now{std::chrono::hours(1)};
  for (int i = 0; i < looks; ++i, now += std::chrono::milliseconds(step_ms))
    if (stopped.is_due(now) && stopped.outlasts(1, process)) return i;
  return -1;
}

TEST_CASE("the time that counts is between looks that find it stopped") {
  const Child child(false);
  CHECK(passes(1000, 250, 100, child.id) == 4);
  CHECK(passes(1000, 20, 1000, child.id) == 52);   // looks every 260 ms: 1040 ms
  CHECK(passes(0, 250, 1000, child.id) == -1);
  CHECK(passes(1000, 250, 1000, getpid()) == -1);
  // A rank that looks once in ten minutes was stopped itself: each interval counts as one second.
  CHECK(passes(2500, 600000, 100, child.id) == 3);
}

TEST_CASE("a rank is given up once") {
  const Child child(false);
  Stopped stopped(1, 100);
  Stopped::Clock::time_point now{std::chrono::hours(1)};
  int times = 0;
  for (int i = 0; i < 10; ++i, now += std::chrono::seconds(1))
    if (stopped.is_due(now) && stopped.outlasts(0, child.id)) ++times;
  CHECK(times == 1);
  CHECK(stopped.why(0, 7) == "its process 7 has been stopped by a signal for 0.1 s "
                          "(PACELINE_STOPPED_MS)");
}

}  // namespace
}  // namespace paceline
