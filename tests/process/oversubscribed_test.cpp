// Ranks that share their processor with programs that compute.
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "process/ranks.hpp"
#include "runtime/progress/clock.hpp"

namespace paceline {
namespace {

constexpr int kHogs = 3;
constexpr int kTimeoutMs = 300;
constexpr double kMostS = 10;   // each yield to the hogs takes some 10 ms; others use the machine

// Confines this process, and its children, to one of the processors that it may use.
void stay_on(int which) {
  cpu_set_t all, one;
  sched_getaffinity(0, sizeof(all), &all);
  CPU_ZERO(&one);
  for (int cpu = 0, left = which % CPU_COUNT(&all); cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &all) && left-- == 0) CPU_SET(cpu, &one);
  sched_setaffinity(0, sizeof(one), &one);
}

// Processes that compute for as long as this lives.
class Hogs {
 public:
  Hogs() {
    for (int i = 0; i < kHogs; ++i) {
      const pid_t hog = fork();
      if (hog > 0) {
        hogs_.push_back(hog);
        continue;
      }
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      while (true) asm volatile("");
    }
  }
  ~Hogs() {
    for (const pid_t hog : hogs_) kill(hog, SIGKILL);
    for (const pid_t hog : hogs_) waitpid(hog, nullptr, 0);
  }

 private:
  std::vector<pid_t> hogs_;
};

std::string wait_in_vain(int rank, const std::string& folder, int processors) {
  stay_on(rank % processors);
  Communicator world = test::join(rank, 2, folder, rank == 0 ? kTimeoutMs : 20000);
  const Call barrier{.collective = Collective::barrier};
  world.run(barrier);
  if (rank == 1) {
    test::await_note(folder, "timeout");
    return {};
  }
  const Hogs hogs;
  const double begun_s = now_s();
  const std::string bad =
      test::expect_fault(Fault::timeout, {"has waited 0.3 s"}, [&] { world.run(barrier); });
  const double took_s = now_s() - begun_s;
  test::note(folder, "timeout");
  if (bad.empty() && took_s > kMostS)
    return str("a time-out of ", kTimeoutMs, " ms came after ", took_s, " s");
  return bad;
}

}  // namespace

TEST_CASE("a time-out comes in time beside programs that compute") {
  for (const int processors : {1, 2}) {  // of the ranks: oversubscribed, and one each
    const std::string bad = test::run_ranks(2, 60, [&](int rank, const std::string& folder) {
      return wait_in_vain(rank, folder, processors);
    });
    CHECK_MESSAGE(bad.empty(), bad);
  }
}

}  // namespace paceline
