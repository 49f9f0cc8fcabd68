#include "presence.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "base/options.hpp"
#include "base/options_launcher.hpp"
#include "base/str.hpp"
#include "host_mpi.hpp"
#include "report.hpp"

namespace paceline::preload {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPatience{30'000}, kPause{1};
constexpr int kTag = 0;   // no rank has sent anything else yet

bool all_present = true;

// Lets MPI return errors instead of ending the program, for as long as it lives.
class ErrorsReturn {
 public:
  ErrorsReturn() {
    for (std::size_t i = 0; i < kOn.size(); ++i) {
      check(PMPI_Comm_get_errhandler(kOn[i], &before_[i]), "Comm_get_errhandler");
      check(PMPI_Comm_set_errhandler(kOn[i], MPI_ERRORS_RETURN), "Comm_set_errhandler");
    }
  }
  ~ErrorsReturn() {
    for (std::size_t i = 0; i < kOn.size(); ++i) {
      PMPI_Comm_set_errhandler(kOn[i], before_[i]);
      PMPI_Errhandler_free(&before_[i]);
    }
  }
  ErrorsReturn(const ErrorsReturn&) = delete;

 private:
  const std::array<MPI_Comm, 2> kOn = {MPI_COMM_WORLD, MPI_COMM_SELF};
  std::array<MPI_Errhandler, 2> before_ = {};
};

// The name by which a rank shows at the launcher that it is here. Several programs of a user may
// have one launcher at a time, which then has a name for each.
std::string name_of(int rank) {
  return str("paceline-", value_of("PMIX_NAMESPACE").value_or(""), "-", rank);
}

bool is_shown(int rank) {
  char port[MPI_MAX_PORT_NAME] = "";
  return PMPI_Lookup_name(name_of(rank).c_str(), MPI_INFO_NULL, port) == MPI_SUCCESS;
}

// The name of a rank at the launcher, until this one has been heard or has given up.
class Shown {
 public:
  explicit Shown(int rank)
      : name_(name_of(rank)),
        is_there_(PMPI_Publish_name(name_.c_str(), MPI_INFO_NULL, port_) == MPI_SUCCESS &&
                  is_shown(rank)) {}
  ~Shown() {
    if (is_there_) PMPI_Unpublish_name(name_.c_str(), MPI_INFO_NULL, port_);
  }
  Shown(const Shown&) = delete;
  bool is_there() const { return is_there_; }   // false: this launcher keeps no names

 private:
  char port_[9] = "paceline";
  const std::string name_;
  const bool is_there_;
};

std::chrono::milliseconds patience() {
  try {
    return std::min(kPatience, std::chrono::milliseconds(number_of(Option::start_timeout_ms)));
  } catch (const Error&) {
    return kPatience;   // joining says that the option is wrong
  }
}

void say_missing(const std::string& ranks) {
  std::fprintf(stderr,
               "paceline: preload: %s not loaded Paceline's library; all calls pass through to the "
               "host MPI. LD_PRELOAD must reach every process: Open MPI's mpiexec passes it to "
               "other nodes with -x LD_PRELOAD.\n", ranks.c_str());
}

// "rank 3 of 8 has", "ranks 3, 5 and 4 more of 8 have"
std::string described(const std::vector<int>& missing, int ranks) {
  constexpr std::size_t kNamed = 8;
  std::string text = missing.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < std::min(missing.size(), kNamed); ++i)
    text += str(i ? ", " : "", missing[i]);
  if (missing.size() > kNamed) text += str(" and ", missing.size() - kNamed, " more");
  return str(text, " of ", ranks, missing.size() == 1 ? " has" : " have");
}

// Waits for the names of the other ranks, and answers those that are there.
void answer_all(int ranks) {
  const auto last = Clock::now() + patience();
  std::vector<int> here, missing;
  for (int r = 1; r < ranks; ++r) {
    bool is_here = is_shown(r);
    for (; !is_here && Clock::now() < last; is_here = is_shown(r))
      std::this_thread::sleep_for(kPause);
    (is_here ? here : missing).push_back(r);
  }
  all_present = missing.empty();
  if (!all_present) say_missing(described(missing, ranks));
  const char answer = all_present;
  for (int r : here) check(PMPI_Send(&answer, 1, MPI_CHAR, r, kTag, MPI_COMM_WORLD), "Send");
}

// Waits twice as long for rank 0 as that waits for others.
void hear_answer(int ranks) {
  const auto last = Clock::now() + 2 * patience();
  char answer = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  check(PMPI_Irecv(&answer, 1, MPI_CHAR, 0, kTag, MPI_COMM_WORLD, &request), "Irecv");
  int has_come = 0;
  do {
    check(PMPI_Test(&request, &has_come, MPI_STATUS_IGNORE), "Test");
    if (!has_come) sched_yield();
  } while (!has_come && Clock::now() < last);
  all_present = answer != 0;
  if (has_come) return;
  check(PMPI_Cancel(&request), "Cancel");
  check(PMPI_Wait(&request, MPI_STATUS_IGNORE), "Wait");
  say_missing(described({0}, ranks));
}

}  // namespace

void meet_ranks() {
  int rank = 0, ranks = 1;
  check(PMPI_Comm_rank(MPI_COMM_WORLD, &rank), "Comm_rank");
  check(PMPI_Comm_size(MPI_COMM_WORLD, &ranks), "Comm_size");
  MPI_Comm parent = MPI_COMM_NULL;
  check(PMPI_Comm_get_parent(&parent), "Comm_get_parent");
  if (ranks == 1 || parent != MPI_COMM_NULL) return;
  const ErrorsReturn errors_return;
  const Shown shown(rank);
  if (!shown.is_there()) return;
  all_present = false;   // until they have met, also if MPI fails meanwhile
  rank == 0 ? answer_all(ranks) : hear_answer(ranks);
}

bool are_all_present() { return all_present; }

}  // namespace paceline::preload
