// Ranks as processes: forked here, over shared memory, or started by an MPI.
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>

#include "fuzz/command.hpp"
#include "fuzz/play.hpp"
#include "process/ranks.hpp"
#include "runtime/join.hpp"

namespace paceline::fuzz {
namespace {

constexpr unsigned kLimitS = 100;   // nothing may hang
constexpr int kTimeoutMs = 20000;
constexpr int kMostCalls = 16;      // of a program

// Empty, or what went wrong in one of the programs on this rank, with its seed.
// `entered`: memory that all ranks see, kMostCalls per program; or null.
std::string play_all(const Request& request, Communicator world, bool near,
                     std::atomic<int>* entered) {
  Seat seat{.world = std::move(world),
            .pause = [](int us) { usleep(static_cast<useconds_t>(us)); },
            .near = near,
            .idle = [] { sched_yield(); }};
  for (int n = 0; n < request.programs; ++n) {
    alarm(kLimitS);
    if (entered) seat.entered = entered + n * kMostCalls;
    const Ending ending = play(program_of(request, n), seat);
    if (!ending.flaw.empty())
      return str("seed ", request.seed + std::uint64_t(n), ": ", ending.flaw);
    if (!ending.error.empty())
      return str("seed ", request.seed + std::uint64_t(n), ": rank ", seat.world.rank(),
                 " threw: ", ending.error);
  }
  return {};
}

}  // namespace

std::string play_shm(const Request& request) {
  const std::size_t bytes = std::size_t(request.programs) * kMostCalls * sizeof(std::atomic<int>);
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  require(memory != MAP_FAILED, "no memory for ", request.programs, " programs");
  auto* const entered = static_cast<std::atomic<int>*>(memory);   // zeros
  const std::string bad = test::run_ranks(request.ranks, kLimitS, [&](int rank, const std::string& folder) {
    const Progress progress = request.threads ? Progress::thread : Progress::caller;
    return play_all(request, test::join(rank, request.ranks, folder, kTimeoutMs, progress), true,
                    entered);
  });
  munmap(memory, bytes);
  return bad;
}

int play_mpi(const Request& request) {
  const auto mpi = MpiLibrary::load(request.library);
  const bool threads = mpi->init() == MpiThreads::multiple;
  int status = 0;
  {
    WorldConfig config;
    config.timeout_ms = kTimeoutMs;
    config.shm_bytes = 4u << 20;
    config.progress = threads && request.threads ? Progress::thread : Progress::caller;
    config.only_mpi = request.only_mpi;
    if (request.only_mpi) config.mpi = {.eager_bytes = 256, .chunk_bytes = 192};
    const auto begun = mpi->open(nullptr);
    const std::string bad =
        play_all(request, join_mpi(*mpi, nullptr, config), !request.only_mpi, nullptr);
    if (!bad.empty()) std::printf("%s\n", bad.c_str());
    else if (begun->rank() == 0)
      std::printf("mpi: %d programs from seed %llu on end rightly on %d ranks\n",
                  request.programs, static_cast<unsigned long long>(request.seed), begun->ranks());
    std::fflush(stdout);
    status = bad.empty() ? 0 : 1;
    begun->share("");   // who has failed waits for the others' words
  }
  mpi->finalize();
  return status;
}

}  // namespace paceline::fuzz
