// Two ranks of a node, many calls of all lengths and kinds, one rank ahead now and then: stages
// that the two swap, and long stretches that are taken in several streams.
#include <doctest/doctest.h>

#include "base/random.hpp"
#include "process/ranks.hpp"
#include "world/collective_case.hpp"

namespace paceline {
namespace {

using test::Buffers;
using test::Case;
using test::run_ranks;

constexpr int kCalls = 600;

// Counts of all magnitudes to 400,000 elements, most of them odd in every respect.
std::size_t count_of(Random& random) {
  const std::size_t most = std::size_t{4} << random.below(17);
  return random.below(std::min<std::size_t>(most, 400000)) + (random.below(9) == 0 ? 262144 : 0);
}

TEST_CASE("two ranks: calls of all lengths in any order") {
  const std::string bad = run_ranks(2, 120, [](int rank, const std::string& folder) -> std::string {
    Communicator world = test::join(rank, 2, folder);
    Random random(20261123), own(std::uint64_t(rank) + 1);
    int staged = 0;
    for (int i = 0; i < kCalls; ++i) {
      const Collective all[] = {Collective::allreduce,  Collective::allreduce,
                                Collective::allgather,  Collective::reduce_scatter,
                                Collective::alltoall,   Collective::broadcast,
                                Collective::reduce,     Collective::barrier};
      const Collective c = all[random.below(std::size(all))];
      const std::size_t count = c == Collective::barrier ? 0 : count_of(random);
      const int root = static_cast<int>(random.below(2));
      const bool in_place = random.below(2) == 0;
      const Case one{c, "", 2, count, has_root(c) ? root : 0, in_place};
      if (own.below(10) == 0) usleep(static_cast<useconds_t>(own.below(300)));
      Buffers<float> data(one, rank);
      const Call call = data.call();
      staged += world.explain(call).find("one node") != std::string::npos;
      world.run(call);
      if (std::string wrong = data.check(); !wrong.empty()) return str("call ", i, ": ", wrong);
    }
    return staged > kCalls / 2 ? "" : str("only ", staged, " calls by stages");
  });
  CHECK_MESSAGE(bad.empty(), bad);
}

}  // namespace
}  // namespace paceline
