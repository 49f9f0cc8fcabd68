// Programs of seeds on processes that share memory.
#include <doctest/doctest.h>

#include "fuzz/command.hpp"
#include "world/worlds.hpp"

namespace paceline::fuzz {
namespace {

TEST_CASE("programs end rightly over shm") {
  for (const int ranks : {2, 3, 5})
    for (const bool threads : {false, true}) {
      Options options{.what = "play", .how = "shm", .seed = std::uint64_t(ranks)};
      options.programs = test::by_length(5, 20, 500);
      options.ranks = ranks;
      options.threads = threads;
      options.fast = threads == (ranks == 3);
      const std::string bad = play_shm(options);
      CHECK_MESSAGE(bad.empty(), bad, "\n  ./dev fuzz --on shm --ranks ", ranks,
                    threads ? " --threads" : "", options.fast ? " --fast" : "",
                    " --seed <the one above>");
    }
}

}  // namespace
}  // namespace paceline::fuzz
