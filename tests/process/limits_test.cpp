// Limits of a process (descriptors, addresses, the length of files): where memory can be shared
// within them it is, and a rank that cannot reach a peer's says so to all, at once.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

#include "process/ranks.hpp"
#include "world/cases.hpp"

namespace paceline {
namespace {

using test::Buffers;
using test::Case;
using test::expect_fault;
using test::join;
using test::run_ranks;

constexpr std::size_t kKiB = 1024, kMiB = 1024 * kKiB;

void limit(int what, std::size_t most) {
  rlimit found{};
  getrlimit(static_cast<__rlimit_resource_t>(what), &found);
  found.rlim_cur = most;
  setrlimit(static_cast<__rlimit_resource_t>(what), &found);
}

// Whether a rank can go on with few descriptors; the test is else skipped.
bool needs_few_descriptors() {
  if (test::kHasSanitizer) test::skip("a sanitizer opens descriptors of its own");
  return !test::kHasSanitizer;
}

// Descriptors: so many are free from now on.
void leave_descriptors(std::size_t most) {
  const int next = dup(0);
  close(next);
  limit(RLIMIT_NOFILE, std::size_t(next) + most);
}

void leave_addresses(std::size_t most) {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  limit(RLIMIT_AS, pages * std::size_t(sysconf(_SC_PAGESIZE)) + most);
}

std::string allreduce(Communicator& comm, std::size_t count) {
  Buffers<float> buffers(Case{Collective::allreduce, "", comm.size(), count}, comm.rank());
  comm.run(buffers.call());
  return buffers.check();
}

// Rank 1 lacks what it takes to reach the other's memory; both hear of it long before the time-out.
std::string cannot_reach(void (*starve)(), const char* word, Progress progress) {
  return run_ranks(2, 60, [=](int rank, const std::string& folder) -> std::string {
    Communicator world = join(rank, 2, folder, 50000, progress);
    Communicator later = world.dup();
    if (rank == 1) starve();
    return expect_fault(Fault::resource, {"rank 1", word, "cannot be used any more"},
                        [&] {
                          allreduce(later, 3);   // rank 0 has all that it needs for this one
                          allreduce(later, 3);
                        });
  });
}

TEST_CASE("a rank that cannot reach a peer's stage says what it lacks, on all ranks") {
  for (const Progress progress : {Progress::caller, Progress::thread}) {
    // Its own stage takes the one that is free.
    if (needs_few_descriptors())
      CHECK(cannot_reach([] { leave_descriptors(1); }, "ulimit -n", progress) == "");
    CHECK(cannot_reach([] { leave_addresses(64 * kMiB); }, "ulimit -v", progress) == "");
  }
}

// Without a single one it could not write into the store's folder either.
TEST_CASE("a rank that has few descriptors left as it starts says so, on all ranks") {
  if (!needs_few_descriptors()) return;
  for (std::size_t left = 1; left < 9; ++left) {
    const std::string bad = run_ranks(2, 60, [=](int rank, const std::string& folder) {
      if (rank == 1) leave_descriptors(left);
      std::string heard;
      try {
        Communicator world = join(rank, 2, folder);
        return allreduce(world, 3);
      } catch (const Error& error) {
        heard = error.what();
      }
      if (heard.find("Too many open files") != heard.npos) return std::string();
      return str("rank ", rank, ": ", heard);
    });
    CHECK_MESSAGE(bad.empty(), left, " descriptors: ", bad);
  }
}

TEST_CASE("under limits of files and addresses communicators are made, and results are right") {
  const auto works = [](Communicator& world) -> std::string {
    std::vector<Communicator> all{world.dup(), world.dup(), world.dup()};
    for (Communicator& one : all)
      for (const std::size_t count : {std::size_t{3}, std::size_t{5000}, std::size_t{700001}})
        if (std::string bad = allreduce(one, count); !bad.empty()) return bad;
    return allreduce(world, 700001);
  };
  for (const std::size_t most : {100 * kMiB, 5 * kMiB, 1 * kMiB, 256 * kKiB}) {
    const std::string bad = run_ranks(3, 60, [&](int rank, const std::string& folder) {
      limit(RLIMIT_FSIZE, most);   // beyond which the system would end the process
      Communicator world = join(rank, 3, folder);
      return works(world);
    });
    CHECK_MESSAGE(bad.empty(), "files of ", most, " bytes: ", bad);
  }
  const std::string bad = run_ranks(3, 60, [&](int rank, const std::string& folder) {
    Communicator world = join(rank, 3, folder);
    leave_addresses(300 * kMiB);
    return works(world);
  });
  CHECK_MESSAGE(bad.empty(), "300 MiB of addresses: ", bad);
}

}  // namespace
}  // namespace paceline
