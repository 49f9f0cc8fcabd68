// Ranks that stand still or vanish in the middle of a program, at any time: every other rank gets
// its results or is told who is missing, in time, and nothing that it gets is wrong.
#include <doctest/doctest.h>

#include <limits>

#include "fuzz/loop.hpp"
#include "world/worlds.hpp"

namespace paceline::fuzz {
namespace {

constexpr double kTimeoutS = 0.5, kForEver = std::numeric_limits<double>::infinity();
// A rank looks every 20 ms who is late; a program waits several times, but only once in vain.
constexpr double kGraceS = 0.1;

struct Missing {
  int stopped = 0, ended = 0;   // ranks: told so, or at the end of their program
};

// Empty, or what a rank should not have been told when `held` is missing.
std::string flaw(const Ending& ending, int held, bool killed) {
  if (!ending.flaw.empty()) return ending.flaw;
  if (ending.error.empty()) return {};
  if (ending.fault != (killed ? Fault::lost : Fault::timeout))
    return "other fault: " + ending.error;
  const std::string name = str("rank ", held);
  return ending.error.find(name) == std::string::npos ? "names another: " + ending.error : "";
}

// Stops a rank for ever, so far into the program.
void stop_one(const Program& program, Faults faults, double usual_s, double part,
              Missing& seen) {
  const double after_s = part * usual_s;
  faults.held_from_s = after_s;
  faults.held_for_s = kForEver;
  faults.timeout_s = kTimeoutS;
  const LoopEnding ending = play_loop(program, faults);
  const std::string what = str("seed ", program.seed, ", rank ", faults.held, " stops after ",
                               after_s, " s: ");
  CHECK_MESSAGE(ending.ends, what, "no end");
  for (int r = 0; r < program.ranks; ++r) {
    const Ending& e = ending.ranks[std::size_t(r)];
    if (r == faults.held) {
      CHECK_MESSAGE(e.flaw.empty(), what, e.flaw);
      continue;
    }
    const std::string bad = flaw(e, faults.held, faults.killed);
    CHECK_MESSAGE(bad.empty(), what, "rank ", r, ": ", bad);
    const double most_s = usual_s + kTimeoutS + kGraceS;
    CHECK_MESSAGE(ending.waited_s[std::size_t(r)] < most_s, what, "rank ", r, " ends after ",
                  ending.waited_s[std::size_t(r)], " s");
    ++(e.error.empty() ? seen.ended : seen.stopped);
  }
}

void stop_at_all_times(bool killed) {
  Missing seen;
  for (std::uint64_t seed = 1; seed <= test::by_length<std::uint64_t>(3, 8, 400); ++seed) {
    const Program program =
        generate(seed, {.ranks = 2 + int(seed % 4), .plain = true, .most_elements = 500});
    Faults faults = weather(seed);
    const double usual_s = play_loop(program, faults).seconds;
    faults.held = int(draw(seed, 5) % std::uint64_t(program.ranks));
    faults.killed = killed;
    for (const double part : {0.0, 0.2, 0.5, 0.8, 0.98})
      stop_one(program, faults, usual_s, part, seen);
  }
  CHECK(seen.stopped > 2 * seen.ended);
  CHECK(seen.ended > 0);
}

TEST_CASE("a rank that vanishes without a word is named within the time-out") {
  stop_at_all_times(false);
}

TEST_CASE("a rank that is known to be dead is named at once") { stop_at_all_times(true); }

TEST_CASE("a rank that stands still for less than the time-out does no harm") {
  for (std::uint64_t seed = 1; seed <= test::by_length<std::uint64_t>(3, 8, 400); ++seed) {
    const Program program = loop_program(seed);
    Faults faults = weather(seed);
    const double usual_s = play_loop(program, faults).seconds;
    faults.held = int(draw(seed, 6) % std::uint64_t(program.ranks));
    faults.held_from_s = usual_s * double(draw(seed, 7) % 100) * 0.01;
    faults.timeout_s = 2;
    faults.held_for_s = 0.8 * faults.timeout_s;
    const LoopEnding ending = play_loop(program, faults);
    CHECK_MESSAGE(ending.trouble().empty(), "seed ", seed, ": ", ending.trouble());
  }
}

TEST_CASE("a rank that comes back after the time-out is told that it was given up") {
  int told = 0;
  for (std::uint64_t seed = 1; seed <= test::by_length<std::uint64_t>(3, 8, 400); ++seed) {
    const Program program =
        generate(seed, {.ranks = 3, .plain = true, .most_elements = 500});
    Faults faults = weather(seed);
    const double usual_s = play_loop(program, faults).seconds;
    faults.held = 1;
    faults.held_from_s = 0.3 * usual_s;
    faults.held_for_s = usual_s + 3 * kTimeoutS;
    faults.timeout_s = kTimeoutS;
    const LoopEnding ending = play_loop(program, faults);
    CHECK(ending.ends);
    for (const Ending& e : ending.ranks) {
      const std::string bad = flaw(e, 1, false);
      CHECK_MESSAGE(bad.empty(), "seed ", seed, ": ", bad);
    }
    told += !ending.ranks[1].error.empty();
  }
  CHECK(told > 0);
}

}  // namespace
}  // namespace paceline::fuzz
