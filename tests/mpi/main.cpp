// One rank under mpiexec: mpi_ranks LIBRARY [SCENARIO...] runs the scenarios one after the other,
// all of them if none is named. Exit status 1 if anything went wrong on this rank.
#include <execinfo.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "mpi/ranks.hpp"

namespace {

constexpr unsigned kLimitS = 90;  // of a scenario
const char* volatile under_way = "";

// Nothing may hang, and what does is named, with the addresses where it waits (addr2line -Cfe).
void give_up(int) {
  for (const char* word : {static_cast<const char*>(under_way), ": not done in time\n"})
    if (write(STDERR_FILENO, word, std::strlen(word)) < 0) break;
  void* frames[32];
  backtrace_symbols_fd(frames, backtrace(frames, 32), STDERR_FILENO);
  _exit(128 + SIGALRM);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace paceline;
  if (argc < 2) {
    std::fprintf(stderr, "usage: mpi_ranks LIBRARY [SCENARIO...]\n");
    return 2;
  }
  int status = 0;
  signal(SIGALRM, give_up);
  try {
    test::Ranks ranks;
    ranks.mpi = MpiLibrary::load(argv[1]);
    const MpiThreads threads = ranks.mpi->init();
    ranks.threads = threads == MpiThreads::multiple;
    const auto world = ranks.mpi->open(nullptr);
    ranks.rank = world->rank();
    ranks.ranks = world->ranks();
    if (ranks.rank == 0)
      std::printf("%s, %s threads: %s\n", std::string(ranks.mpi->abi()).c_str(),
                  std::string(name_of(threads)).c_str(), ranks.mpi->version().c_str());
    std::vector<std::string> names(argv + 2, argv + argc);
    if (names.empty())
      for (const auto& [name, scenario] : test::scenarios()) names.push_back(name);
    for (const std::string& name : names) {
      under_way = name.c_str();
      alarm(kLimitS);
      std::string bad;
      try {
        bad = test::scenarios().at(name)(ranks);
      } catch (const std::exception& error) {
        bad = str("threw: ", error.what());
      }
      if (!bad.empty()) status = 1;
      // At once: other ranks may still wait for this one, and never end.
      if (!bad.empty() || ranks.rank == 0)
        std::printf("%s: rank %d of %d: %s\n", name.c_str(), ranks.rank, ranks.ranks,
                    bad.empty() ? "ok" : bad.c_str());
      std::fflush(stdout);
      world->allgather("");  // the next one begins together
    }
    ranks.mpi->finalize();
  } catch (const std::exception& error) {
    std::printf("start-up: %s\n", error.what());
    status = 1;
  }
  std::fflush(stdout);
  return status;
}
