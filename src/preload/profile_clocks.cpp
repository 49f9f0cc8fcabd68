// Compares the ranks' clocks by messages of MPI. At MPI's start no message of the program can be
// under way, and at its end none may be left.
#include <sched.h>

#include <algorithm>
#include <cstdio>

#include "base/error.hpp"
#include "base/str.hpp"
#include "profile/clocks.hpp"
#include "profile_state.hpp"

namespace paceline::preload {
namespace {

constexpr int kTag = 32007;   // every MPI allows tags up to 32767
constexpr std::int64_t kLongestNs = 60'000'000'000;

// Gives up after a minute: a rank that was not preloaded never answers.
class MpiLink : public PingLink {
 public:
  void send(int peer, std::int64_t value) override {
    PMPI_Send(&value, sizeof value, MPI_BYTE, peer, kTag, MPI_COMM_WORLD);
  }
  std::int64_t receive(int peer) override {
    std::int64_t value = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    PMPI_Irecv(&value, sizeof value, MPI_BYTE, peer, kTag, MPI_COMM_WORLD, &request);
    const std::int64_t begun = profile_now_ns();
    for (int done = 0; true; sched_yield()) {
      PMPI_Test(&request, &done, MPI_STATUS_IGNORE);
      if (done) return value;
      if (profile_now_ns() - begun < kLongestNs) continue;
      PMPI_Cancel(&request);
      PMPI_Wait(&request, MPI_STATUS_IGNORE);
      fail(Fault::timeout, "profile: rank ", peer, " has not compared clocks within a minute. Was ",
           "the library preloaded into all ranks?");
    }
  }
};

struct Clocks {
  std::vector<int> leaders;   // on rank 0
  bool is_leader = false;     // on the others
};

// Each rank sends its clock's identity to rank 0, and receives whether it is to measure.
Clocks agree(MpiLink& link, int rank, int ranks) {
  Clocks clocks;
  const auto own = static_cast<std::int64_t>(clock_identity());
  if (rank > 0) {
    link.send(0, own);
    clocks.is_leader = link.receive(0) != 0;
    return clocks;
  }
  std::vector<std::uint64_t> of_rank{clock_identity()};
  for (int r = 1; r < ranks; ++r) of_rank.push_back(static_cast<std::uint64_t>(link.receive(r)));
  clocks.leaders = clock_leaders(of_rank);
  for (int r = 1; r < ranks; ++r)
    link.send(r, std::count(clocks.leaders.begin(), clocks.leaders.end(), r));
  return clocks;
}

Clocks& agreed() {
  static Clocks* const one = new Clocks;
  return *one;
}

}  // namespace

void compare_clocks(const char* when) try {
  int rank = 0, ranks = 1;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MpiLink link;
  if (std::string_view(when) == "start") agreed() = agree(link, rank, ranks);
  for (const int leader : agreed().leaders) answer_pings(link, leader, profile_now_ns);
  if (!agreed().is_leader) return;
  const ClockOffset found = measure_offset(link, profile_now_ns);
  if (watched(MPI_COMM_WORLD) || std::string_view(when) == "end")
    recorder().note(clock_note(when, found));
} catch (const Error& error) {
  agreed() = {};
  std::fprintf(stderr, "paceline: %s\n", error.what());
}

}  // namespace paceline::preload
