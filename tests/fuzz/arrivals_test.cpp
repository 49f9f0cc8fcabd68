// Ranks of a node each that expect some of them to be late: who is expected, when all begin to do
// so, and what comes out.
#include <doctest/doctest.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/random.hpp"
#include "fuzz/nodes.hpp"
#include "runtime/arrivals.hpp"
#include "world/worlds.hpp"

namespace paceline::fuzz {
namespace {

// Of each call, by rank: what explain() says before it.
using Explained = std::vector<std::vector<std::string>>;

}  // namespace

TEST_CASE("arrivals: all ranks begin to expect a late one in the same call, and it pays") {
  constexpr int kRanks = 4, kCalls = 40, kLate = 2;
  Nodes nodes(kRanks, 7);
  Explained explained(kCalls, std::vector<std::string>(kRanks));
  std::vector<double> rest_s(kCalls, 0), entered_s(kCalls, 0);
  const std::vector<float> right = in_ring_order(kRanks, kCount);
  int wrong = 0;
  const bool ended = nodes.run(learning, [&](Communicator& world, int rank) {
    std::vector<float> buffer(kCount);
    for (std::size_t c = 0; c < kCalls; ++c) {
      for (std::size_t i = 0; i < kCount; ++i) buffer[i] = value(rank, i);
      if (rank == kLate) nodes.fibers.sleep(2 * kMessageS);
      const Call call = sum_of(buffer);
      explained[c][std::size_t(rank)] = world.explain(call);
      entered_s[c] = std::max(entered_s[c], nodes.fibers.now_s());
      world.run(call);
      rest_s[c] = std::max(rest_s[c], nodes.fibers.now_s() - entered_s[c]);
      wrong += buffer != right;
    }
  });
  CHECK(ended);
  CHECK(nodes.trouble() == "");
  CHECK(wrong == 0);   // the same bits, before and after
  int switched = 0;
  for (const auto& call : explained) {
    const bool is_tail = says(call[0], "tail_as_ring");
    switched += is_tail;
    for (const std::string& one : call) CHECK(one == call[0]);
    CHECK((is_tail || call[0].starts_with("ring:")));
  }
  MESSAGE(explained.back()[0]);
  MESSAGE("first call ", rest_s[2] / kMessageS, ", last call ", rest_s.back() / kMessageS,
          " of the message's time after the last arrival");
  CHECK(switched >= 15);
  CHECK(says(explained.back()[0], "taken for late: 2"));
  CHECK(rest_s.back() < 0.9 * rest_s[2]);
}

TEST_CASE("arrivals: nobody late, nothing changes") {
  Nodes nodes(4, 9);
  std::string said;
  const bool ended = nodes.run(learning, [&](Communicator& world, int rank) {
    std::vector<float> buffer(kCount, 1);
    for (int c = 0; c < 40; ++c) {
      Random random(std::uint64_t(c) * 8 + std::uint64_t(rank));
      nodes.fibers.sleep(1e-3 * kMessageS * double(random.below(200)));
      world.run(sum_of(buffer));
      std::fill(buffer.begin(), buffer.end(), 1.0f);
    }
    said = world.explain(sum_of(buffer));
  });
  CHECK(ended);
  CHECK(nodes.trouble() == "");
  CHECK_MESSAGE(says(said, "taken for late: none"), said);
}

TEST_CASE("arrivals: whoever comes when, and whatever is expected, the bits are the same") {
  const int kRanks = 5;
  for (std::uint64_t seed = 1; seed <= test::by_length<std::uint64_t>(2, 6, 200); ++seed)
    for (const char* arrival : {"auto", "static:1", "static:4,0"})
      for (bool canonical : {false, true}) {
        const std::vector<float> right =
            canonical ? in_rank_order(kRanks, kCount) : in_ring_order(kRanks, kCount);
        Nodes nodes(kRanks, seed);
        int wrong = 0;
        const bool ended = nodes.run(
            [&](WorldConfig& config, int) {
              config.arrival = arrival;
              if (canonical) config.numbers = Numbers::canonical;
            },
            [&](Communicator& world, int rank) {
              std::vector<float> buffer(kCount);
              Random random(seed * 64 + std::uint64_t(rank));
              for (int c = 0; c < 24; ++c) {
                for (std::size_t i = 0; i < kCount; ++i) buffer[i] = value(rank, i);
                const bool is_late = rank == int(seed % kRanks) && c % 12 < 9;
                const double jitter = 1e-2 * double(random.below(9));
                nodes.fibers.sleep(kMessageS * ((is_late ? 2 : 0) + jitter));
                world.run(sum_of(buffer));
                wrong += buffer != right;
              }
            });
        CHECK(ended);
        CHECK(nodes.trouble() == "");
        CHECK(wrong == 0);
      }
}

// Which form a rank calls is its own affair: what one rank does not wait for nobody learns from.
TEST_CASE("arrivals: blocking calls, started ones and plans meet each other") {
  const int kRanks = 4;
  const std::vector<float> right = in_ring_order(kRanks, kCount);
  for (std::uint64_t seed = 1; seed <= test::by_length<std::uint64_t>(2, 8, 200); ++seed) {
    Nodes nodes(kRanks, seed);
    int wrong = 0, switched = 0;
    const bool ended = nodes.run(learning, [&](Communicator& world, int rank) {
      std::vector<std::vector<float>> buffers(3, std::vector<float>(kCount));
      Plan plan = world.plan(sum_of(buffers[0]));
      Random random(seed * 64 + std::uint64_t(rank));
      for (int c = 0; c < 80; ++c) {
        // At first all learn, but from calls for which one of them does not wait.
        const bool is_odd = c % 4 == 0 && rank == c / 4 % kRanks;
        const std::size_t form = c < 50 ? (is_odd ? 2 : 1) : random.below(4);
        const std::size_t most = c % 10 == 9 ? 2 : 1;            // two at once, now and then
        if (rank == 1) nodes.fibers.sleep(2 * kMessageS);
        switched += says(world.explain(sum_of(buffers[0])), "tail_as_ring");
        for (auto& buffer : buffers)
          for (std::size_t i = 0; i < kCount; ++i) buffer[i] = value(rank, i);
        Request first, second;
        if (form == 0) first = plan.start();
        else if (form == 1 && most == 1) world.run(sum_of(buffers[0]));
        else first = world.start(sum_of(buffers[0]));
        if (most == 2) second = world.start(sum_of(buffers[1]));
        if (first.valid()) first.wait();
        if (second.valid()) second.wait();
        wrong += buffers[0] != right || (most == 2 && buffers[1] != right);
      }
    });
    CHECK(ended);
    CHECK(nodes.trouble() == "");
    CHECK(switched > 4 * 20);   // all have learned something, and keep to it
    CHECK(wrong == 0);
  }
}

TEST_CASE("arrivals: ranks that expect others are told so, and get no wrong data") {
  for (const auto& [one, other] : {std::pair{"static:1", "static:2"}, {"off", "static:1"},
                                   {"auto", "off"}, {"static:1,2", "static:2,1"}}) {
    Nodes nodes(4, 3);
    int calls = 0;
    const bool ended = nodes.run(
        [&, a = one, b = other](WorldConfig& config, int rank) {
          config.arrival = rank == 3 ? a : b;
          config.algorithms = {};
        },
        [&](Communicator& world, int) {
          std::vector<std::int32_t> buffer(kCount, 1);
          Call call{Collective::allreduce, Type::i32, Op::sum};
          call.input = call.output = buffer.data();
          call.count = kCount;
          world.run(call);
          ++calls;
        });
    CHECK(ended);
    CHECK(calls == 0);
    for (Fault fault : nodes.faults) CHECK(fault == Fault::mismatch);
  }
}

TEST_CASE("arrivals: a rank that leaves while it is expected late is missed, not waited for") {
  Nodes nodes(4, 11);
  std::vector<int> calls(4, 0);
  const bool ended = nodes.run(learning, [&](Communicator& world, int rank) {
    std::vector<float> buffer(kCount, 1);
    for (int c = 0; c < 40; ++c) {
      if (rank == 2) nodes.fibers.sleep(2 * kMessageS);
      if (rank == 2 && c == 30) return;   // and leaves
      world.run(sum_of(buffer));
      ++calls[std::size_t(rank)];
    }
  });
  CHECK(ended);
  for (int r : {0, 1, 3}) {
    CHECK(calls[std::size_t(r)] == 30);
    CHECK(nodes.faults[std::size_t(r)] == Fault::lost);
  }
}

TEST_CASE("arrivals: what cannot be expected is refused at once") {
  for (const char* bad : {"on", "static", "static:", "static:1,", "static:a", "static:1,1",
                          "static:-1", "static:1 ,2", "Auto"})
    CHECK_THROWS_AS(expected_by(bad), Error);
  CHECK(expected_by("static:3,0").late == std::vector{3, 0});
  CHECK(expected_by("auto").learns);
  CHECK_FALSE(expected_by("off").learns);
}

}  // namespace paceline::fuzz
