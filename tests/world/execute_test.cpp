// The polled interpreter over the loop transport: one thread steps all ranks in a seeded order.
#include <doctest/doctest.h>

#include <memory>
#include <thread>

#include "base/random.hpp"
#include "bootstrap/open_world.hpp"
#include "loop/loop.hpp"
#include "world/cases.hpp"
#include "world/worlds.hpp"

namespace paceline {
namespace {

using test::Buffers;
using test::Case;

struct LoopWorld {
  LoopNet net;
  std::vector<Communicator> ranks;

  explicit LoopWorld(int p, std::uint64_t seed) : net(p, {.seed = seed}) {
    WorldConfig config;
    config.progress = Progress::caller;
    config.numbers = Numbers::fast;   // which refuses no algorithm
    for (int r = 0; r < p; ++r) ranks.push_back(join_transport(net.endpoint(r), config));
  }
};

// Starts the case on all ranks in a seeded order and steps them until all are through.
template <class T>
std::string run_case(LoopWorld& world, const Case& c, Random& random) {
  std::vector<std::unique_ptr<Buffers<T>>> buffers;
  std::vector<Request> requests(std::size_t(c.ranks));
  for (int r = 0; r < c.ranks; ++r) buffers.push_back(std::make_unique<Buffers<T>>(c, r));
  int left = c.ranks;
  std::vector<bool> done(std::size_t(c.ranks), false);
  for (long steps = 0; left > 0; ++steps) {
    if (steps > 3000000) return c.name() + ": does not end";
    const std::size_t r = random.below(std::size_t(c.ranks));
    if (done[r]) continue;
    if (!requests[r].valid()) requests[r] = world.ranks[r].start(buffers[r]->call());
    if (!requests[r].test()) continue;
    done[r] = true;
    --left;
  }
  for (const auto& b : buffers)
    if (std::string bad = b->check(); !bad.empty()) return bad;
  return {};
}

TEST_CASE("every algorithm keeps its contract over loop") {
  const bool brief = test::short_run();
  long cases = 0;
  for (int p = 1; p <= (brief ? 5 : 17); ++p) {
    if (p > 8 && p != 13 && !test::long_run()) continue;
    LoopWorld world(p, 17 + std::uint64_t(p));
    Random random(4711 + std::uint64_t(p));
    test::for_each_case(p, brief, [&](const Case& c) {
      const std::string bad =
          ++cases % 2 ? run_case<float>(world, c, random) : run_case<double>(world, c, random);
      CHECK_MESSAGE(bad.empty(), bad);
    });
  }
  MESSAGE(cases << " cases");
}

TEST_CASE("average divides once") {
  for (int p : {1, 2, 3, 4, 7}) {
    LoopWorld world(p, 3);
    Random random(5);
    for (const Algorithm* a : registry()) {
      if (!has_op(a->collective) || a->uses(Access::symmetric) || a->by_nodes()) continue;
      Case c{a->collective, a->name, p, 12};
      c.op = Op::average;
      // 1..4093 summed over p ranks is exact in float64; the division rounds once on either side.
      for (const std::string& bad : {run_case<double>(world, c, random),
                                     run_case<std::int32_t>(world, c, random)})
        CHECK_MESSAGE(bad.empty(), bad);
    }
  }
}

TEST_CASE("many operations are under way at once and end in any order") {
  const int p = 4;
  LoopWorld world(p, 99);
  Random random(7);
  std::vector<Case> cases;
  for (std::size_t n : {std::size_t{0}, std::size_t{5}, std::size_t{64}, std::size_t{1000}})
    for (const Algorithm* a : registry())
      if (!a->uses(Access::symmetric) && !a->by_nodes())
        cases.push_back({a->collective, a->name, p, n, int(n % 4)});
  std::vector<std::vector<std::unique_ptr<Buffers<float>>>> buffers(p);
  std::vector<std::vector<Request>> requests(p);
  for (std::size_t r = 0; r < p; ++r)
    for (const Case& c : cases) {
      buffers[r].push_back(std::make_unique<Buffers<float>>(c, int(r)));
      requests[r].push_back(world.ranks[r].start(buffers[r].back()->call()));
    }
  for (std::size_t left = p * cases.size(), steps = 0; left > 0; ++steps) {
    REQUIRE(steps < 5000000);
    auto& mine = requests[random.below(p)];
    Request& one = mine[random.below(cases.size())];
    if (one.valid() && one.test()) {
      one = Request();
      --left;
    }
  }
  for (const auto& rank : buffers)
    for (const auto& b : rank) CHECK_MESSAGE(b->check().empty(), b->check());
}

TEST_CASE("ranks as threads, with a progress thread each") {
  const int p = 4;
  LoopNet net(p, {.seed = 12});
  std::vector<std::string> bad(p);
  std::vector<std::thread> threads;
  for (int r = 0; r < p; ++r)
    threads.emplace_back([&, r] {
      Communicator world = join_transport(net.endpoint(r), {});
      test::for_each_case(p, true, [&](const Case& c) {
        Buffers<float> b(c, r);
        Request request = world.start(b.call());
        request.wait(20000);
        if (std::string wrong = b.check(); !wrong.empty()) bad[std::size_t(r)] = wrong;
      });
    });
  for (std::thread& t : threads) t.join();
  for (const std::string& b : bad) CHECK_MESSAGE(b.empty(), b);
}

}  // namespace
}  // namespace paceline
