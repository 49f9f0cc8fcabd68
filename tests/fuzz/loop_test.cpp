// Programs of seeds over the loop transport, under the weather of the same seed.
#include <doctest/doctest.h>

#include "bootstrap/open_world.hpp"
#include "expect_fault.hpp"
#include "fuzz/loop.hpp"
#include "loop/loop.hpp"
#include "world/worlds.hpp"

namespace paceline::fuzz {
namespace {

TEST_CASE("programs end rightly over loop, however late messages are") {
  const std::uint64_t seeds = test::by_length<std::uint64_t>(20, 80, 3000);
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const Program program = loop_program(seed);
    const std::string bad = play_loop(program, weather(seed)).trouble();
    CHECK_MESSAGE(bad.empty(), bad, "\n  ./dev fuzz --on loop --seed ", seed);
  }
}

TEST_CASE("a barrier is over when all ranks are inside, whichever algorithm it takes") {
  const Collective barrier = Collective::barrier;
  for (std::uint64_t seed = 1; seed <= test::by_length<std::uint64_t>(10, 30, 500); ++seed) {
    const Program program = generate(seed, {.ranks = 4, .collective = &barrier});
    Faults faults = weather(seed);
    faults.stages = true;
    const std::string bad = play_loop(program, faults).trouble();
    CHECK_MESSAGE(bad.empty(), bad);
  }
}

TEST_CASE("a tag names one group, and says so") {
  LoopNet net(2, {});
  WorldConfig config;
  config.progress = Progress::caller;
  Communicator world = join_transport(net.endpoint(0), config);
  const Communicator first = world.subgroup({0, 1}, 7);
  const std::string bad = test::expect_fault(Fault::usage, {"tag", "new one"},
                                             [&] { world.subgroup({0, 1}, 7); });
  CHECK_MESSAGE(bad.empty(), bad);
  CHECK(world.subgroup({0, 1}, 8).size() == 2);
}

// How many messages of programs of a collective, one after the other, can have a bit turned; and in
// how many of them nobody notices.
struct Turned {
  int messages = 0, unnoticed = 0;
  std::string first;
};

Turned turn_each(Collective collective) {
  Turned turned;
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    Program program = generate(
        seed, {.ranks = 3, .plain = true, .most_elements = 1000, .collective = &collective});
    for (Invocation& c : program.calls)
      if (has_op(collective)) c.type = Type::i32, c.op = Op::sum;   // in which every bit counts
    for (int message = 0; message < 25; ++message) {
      const Faults faults{.seed = seed, .stages = false, .wrong_message = message};
      const LoopEnding ending = play_loop(program, faults);
      if (!ending.hit) break;   // it has fewer
      ++turned.messages;
      if (!ending.trouble().empty()) continue;
      if (turned.unnoticed++ == 0) turned.first = str("message ", message, "\n", text_of(program));
    }
  }
  return turned;
}

TEST_CASE("a wrong bit in any message is noticed") {
  for (int i = 0; i < kCollectives; ++i) {
    if (Collective(i) == Collective::barrier) continue;
    const Turned turned = turn_each(Collective(i));
    CHECK(turned.messages > 20);
    CHECK_MESSAGE(turned.unnoticed == 0, turned.first);
  }
}

}  // namespace
}  // namespace paceline::fuzz
