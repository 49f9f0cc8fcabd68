// Ranks of one node whose calls may go by who comes when: all decide alike, only while somebody is
// late, and never where bits must not follow arrival. Fibers in model time.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "base/random.hpp"
#include "fuzz/nodes.hpp"
#include "world/worlds.hpp"

namespace paceline::fuzz {
namespace {

constexpr int kRanks = 5;
constexpr std::size_t kElements = 8192;   // of 32 bits
constexpr double kLateS = 1e-3;

template <class T>
Call call_of(Collective collective, Type type, std::vector<T>& buffer) {
  Call call{collective, type, Op::sum};
  call.input = call.output = buffer.data();
  call.count = buffer.size();
  return call;
}

bool goes_by_arrival(const std::string& explained) { return says(explained, "taken: arrival_"); }

// Of each call, by rank: what explain() says before it.
using Explained = std::vector<std::vector<std::string>>;

// So many calls of exact sums, before which a rank sleeps (`late_s`, by call and rank).
Explained sums(Nodes& nodes, int calls, const std::function<double(int call, int rank)>& late_s) {
  Explained explained(static_cast<std::size_t>(calls), std::vector<std::string>(kRanks));
  int wrong = 0;
  const bool ended = nodes.run(learning, [&](Communicator& world, int rank) {
    std::vector<std::int32_t> buffer(kElements);
    for (int c = 0; c < calls; ++c) {
      std::fill(buffer.begin(), buffer.end(), rank + c);
      if (const double s = late_s(c, rank); s > 0) nodes.fibers.sleep(s);
      const Call call = call_of(Collective::allreduce, Type::i32, buffer);
      explained[std::size_t(c)][std::size_t(rank)] = world.explain(call);
      world.run(call);
      wrong += std::count(buffer.begin(), buffer.end(), 10 + kRanks * c) != kElements;
    }
  });
  CHECK(ended);
  CHECK(nodes.trouble() == "");
  CHECK(wrong == 0);
  for (const auto& call : explained)
    for (const std::string& one : call) CHECK(one == call[0]);
  return explained;
}

}  // namespace

TEST_CASE("near: exact sums go by arrival while a rank is late, and as usual again") {
  for (std::uint64_t seed : {1, 2, 3}) {
    Nodes nodes(kRanks, seed, true);
    const Explained explained = sums(
        nodes, 120, [](int call, int rank) { return rank == 2 && call < 60 ? kLateS : 0.0; });
    CHECK(!goes_by_arrival(explained[6][0]));
    CHECK_MESSAGE(goes_by_arrival(explained[59][0]), explained[59][0]);
    CHECK_MESSAGE(!goes_by_arrival(explained.back()[0]), explained.back()[0]);
    if (seed == 1) MESSAGE(explained[59][0]);
  }
}

TEST_CASE("near: nobody late, nothing is tried") {
  Nodes nodes(kRanks, 4, true);
  const Explained explained = sums(nodes, 80, [](int, int) { return 0.0; });
  CHECK_MESSAGE(says(explained.back()[0], "0 us by arrival_leader"), explained.back()[0]);
}

// Counts of one power of two are alike, whatever else comes between: here none comes twice.
TEST_CASE("near: calls of one tag are learned from together, however long each of them is") {
  Nodes nodes(kRanks, 5, true);
  std::vector<std::string> last(kRanks);
  const bool ended = nodes.run(learning, [&](Communicator& world, int rank) {
    for (std::size_t c = 0; c < 40; ++c) {
      std::vector<std::int32_t> tagged(kElements + 8 * c), other(kElements + 4000 + 8 * c);
      if (rank == 2) nodes.fibers.sleep(kLateS);
      Call call = call_of(Collective::allreduce, Type::i32, tagged);
      call.tag = 5;
      last[std::size_t(rank)] = world.explain(call);
      world.run(call);
      if (c % 3 == 0) world.run(call_of(Collective::allreduce, Type::i32, other));
    }
  });
  CHECK(ended);
  CHECK(nodes.trouble() == "");
  for (const std::string& one : last) CHECK_MESSAGE(goes_by_arrival(one), one);
}

// Floats, in `stable`: bits that arrival does not change; sums are taken as without prediction.
TEST_CASE("near: stable never goes by arrival, and keeps its bits") {
  std::vector<std::vector<float>> first(kRanks);
  int other = 0;
  for (std::uint64_t seed = 1; seed <= test::by_length<std::uint64_t>(4, 12, 60); ++seed) {
    Nodes nodes(kRanks, seed, true);
    const bool ended = nodes.run(learning, [&](Communicator& world, int rank) {
      std::vector<float> buffer(kElements);
      Random random(seed * 64 + std::uint64_t(rank));
      for (int c = 0; c < 40; ++c) {
        for (std::size_t i = 0; i < kElements; ++i) buffer[i] = value(rank, i);
        nodes.fibers.sleep(kLateS * double(random.below(3)) + (rank == int(seed % 5) ? kLateS : 0));
        const Call call = call_of(Collective::allreduce, Type::f32, buffer);
        CHECK(!says(world.explain(call), "arrivals"));
        world.run(call);
        auto& kept = first[std::size_t(rank)];
        if (kept.empty()) kept = buffer;
        other += kept != buffer;
      }
    });
    CHECK(ended);
    CHECK(nodes.trouble() == "");
  }
  CHECK(other == 0);
  for (const auto& bits : first) CHECK(bits == first[0]);
}

// In `fast` they may; whoever comes when, in whatever form ranks call, all ranks get the same bits.
TEST_CASE("near: all decide alike under shuffled arrivals, in any form of call") {
  int by_arrival = 0;
  for (std::uint64_t seed = 1; seed <= test::by_length<std::uint64_t>(4, 12, 100); ++seed) {
    Nodes nodes(kRanks, seed, true);
    std::vector<std::vector<float>> sums(200, std::vector<float>(kRanks));
    int wrong = 0;
    const auto options = [](WorldConfig& config, int rank) {
      learning(config, rank);
      config.numbers = Numbers::fast;
    };
    const bool ended = nodes.run(options, [&](Communicator& world, int rank) {
      std::vector<float> one(kElements), two(12000);
      std::vector<std::int32_t> rooted(kElements);
      Plan plan = world.plan(call_of(Collective::allreduce, Type::f32, one));
      Random random(seed * 64 + std::uint64_t(rank)), common(seed);
      int late = 0;
      for (int c = 0; c < 200; ++c) {
        if (c % 50 == 0) late = int(common.below(kRanks + 2));
        nodes.fibers.sleep(1e-5 * double(random.below(4)) + (rank == late ? kLateS : 0));
        std::fill(one.begin(), one.end(), value(rank, 3));
        std::fill(two.begin(), two.end(), value(rank, 5));
        std::fill(rooted.begin(), rooted.end(), rank);
        by_arrival += goes_by_arrival(world.explain(
            call_of(Collective::allreduce, Type::f32, one)));
        Request second, third;
        const Call more = call_of(Collective::allreduce, Type::f32, two);
        if (common.below(3) == 0) second = world.start(more);
        Call reduce = call_of(Collective::reduce, Type::i32, rooted);
        reduce.root = c % kRanks;
        if (common.below(3) == 0) third = world.start(reduce);
        const std::size_t form = random.below(3);
        if (form == 0) world.run(call_of(Collective::allreduce, Type::f32, one));
        else if (form == 1) plan.start().wait();
        else world.start(call_of(Collective::allreduce, Type::f32, one)).wait();
        if (second.valid()) second.wait();
        if (third.valid()) third.wait();
        if (third.valid() && rank == reduce.root) wrong += rooted.back() != 10;
        wrong += std::count(one.begin(), one.end(), one[0]) != kElements;
        sums[std::size_t(c)][std::size_t(rank)] = one[0] + (second.valid() ? 3 * two[7] : 0);
      }
    });
    CHECK(ended);
    CHECK(nodes.trouble() == "");
    for (const auto& bits : sums) wrong += std::count(bits.begin(), bits.end(), bits[0]) != kRanks;
    CHECK(wrong == 0);
  }
  CHECK(by_arrival > 0);
}

TEST_CASE("near: who does not expect anybody is told that others do") {
  Nodes nodes(kRanks, 8, true);
  int calls = 0;
  const auto options = [](WorldConfig& config, int rank) {
    config.arrival = rank == 3 ? "off" : "auto";
  };
  const bool ended = nodes.run(options, [&](Communicator& world, int) {
    std::vector<std::int32_t> buffer(kElements, 1);
    world.run(call_of(Collective::allreduce, Type::i32, buffer));
    ++calls;
  });
  CHECK(ended);
  CHECK(calls == 0);
  for (Fault fault : nodes.faults) CHECK(fault == Fault::mismatch);
}

}  // namespace paceline::fuzz
