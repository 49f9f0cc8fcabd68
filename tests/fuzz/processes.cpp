// Ranks as processes: forked here, over shared memory, or started by an MPI.
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>

#include "bootstrap/join.hpp"
#include "fuzz/command.hpp"
#include "fuzz/play.hpp"
#include "process/ranks.hpp"

namespace paceline::fuzz {
namespace {

constexpr unsigned kLimitS = 100;   // nothing may hang
constexpr int kTimeoutMs = 20000;
constexpr int kMostCalls = 16;      // of a program

// Empty, or what went wrong in one of the programs on this rank, with its seed.
// `entered`: memory that all ranks see, kMostCalls per program; or null.
std::string play_all(const Options& options, Communicator world, bool near,
                     std::atomic<int>* entered) {
  Seat seat{.world = std::move(world),
            .pause = [](int us) { usleep(static_cast<useconds_t>(us)); },
            .near = near,
            .idle = [] { sched_yield(); }};
  for (int n = 0; n < options.programs; ++n) {
    alarm(kLimitS);
    if (entered) seat.entered = entered + n * kMostCalls;
    const Ending ending = play(program_of(options, n), seat);
    if (!ending.flaw.empty())
      return str("seed ", options.seed + std::uint64_t(n), ": ", ending.flaw);
    if (!ending.error.empty())
      return str("seed ", options.seed + std::uint64_t(n), ": rank ", seat.world.rank(),
                 " threw: ", ending.error);
  }
  return {};
}

}  // namespace

std::string play_shm(const Options& options) {
  const std::size_t bytes = std::size_t(options.programs) * kMostCalls * sizeof(std::atomic<int>);
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  require(memory != MAP_FAILED, "no memory for ", options.programs, " programs");
  auto* const entered = static_cast<std::atomic<int>*>(memory);   // zeros
  const auto play_rank = [&](int rank, const std::string& folder) {
    WorldConfig config;
    config.rank = rank;
    config.ranks = options.ranks;
    config.timeout_ms = config.start_timeout_ms = kTimeoutMs;
    config.progress = options.threads ? Progress::thread : Progress::caller;
    config.shm_bytes = 4u << 20;
    config.numbers = options.fast ? Numbers::fast : Numbers::stable;
    // Who leaves waits for peers that do not look for its stage until the alarm ends it.
    config.attachers_ms = 1000 * int(2 * kLimitS * test::kPatience);
    return play_all(options, join_world(std::make_shared<FileStore>(folder), config), true,
                    entered);
  };
  const std::string bad = test::run_ranks(options.ranks, kLimitS, play_rank);
  munmap(memory, bytes);
  return bad;
}

int play_mpi(const Options& options) {
  const auto mpi = MpiLibrary::load(options.library);
  const bool threads = mpi->init() == MpiThreads::multiple;
  int status = 0;
  {
    WorldConfig config;
    config.timeout_ms = kTimeoutMs;
    config.shm_bytes = 4u << 20;
    config.progress = threads && options.threads ? Progress::thread : Progress::caller;
    config.only_mpi = options.only_mpi;
    if (options.only_mpi) config.mpi = {.eager_bytes = 256, .chunk_bytes = 192};
    const auto begun = mpi->open(nullptr);
    const std::string bad =
        play_all(options, join_mpi(*mpi, nullptr, config), !options.only_mpi, nullptr);
    if (!bad.empty()) std::printf("%s\n", bad.c_str());
    else if (begun->rank() == 0)
      std::printf("mpi: %d programs from seed %llu on end rightly on %d ranks\n",
                  options.programs, static_cast<unsigned long long>(options.seed), begun->ranks());
    std::fflush(stdout);
    status = bad.empty() ? 0 : 1;
    begun->allgather("");   // who has failed waits for the others' words
  }
  mpi->finalize();
  return status;
}

}  // namespace paceline::fuzz
