// Calls under way at a time: the most urgent goes first, in the simulator as between ranks.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "bootstrap/open_world.hpp"
#include "simulate/simulate.hpp"
#include "transport/mpi/transport.hpp"
#include "verify/verify.hpp"
#include "world/cases.hpp"
#include "world/mpi_net.hpp"
#include "world/worlds.hpp"

namespace paceline {
namespace {

using test::Buffers;
using test::Case;
using test::MpiNet;

constexpr int kRanks = 4, kSegments = 8;
constexpr std::size_t kCount = 8192;
constexpr MpiConfig kInPieces{.eager_bytes = 256, .chunk_bytes = 192};

Case ring() {
  Case c;
  c.algorithm = "ring";
  c.ranks = kRanks;
  c.count = kCount;
  c.segments = kSegments;
  c.window = 2;
  return c;
}

using Places = std::vector<int>;   // calls, as they end on a rank

// Every rank begins calls of one length in the same order, the first of them before the others;
// then all make progress in a seeded order. Returns the order in which they end on each rank.
std::vector<Places> as_run(const std::vector<int>& priorities, std::uint64_t seed) {
  MpiNet net(kRanks, seed);
  WorldConfig config;
  config.progress = Progress::caller;
  std::vector<Communicator> ranks;
  for (int r = 0; r < kRanks; ++r)
    ranks.push_back(join_transport(mpi::make_transport(net.port(r), kInPieces), config));
  std::vector<std::unique_ptr<Buffers<float>>> buffers;
  std::vector<std::vector<Request>> requests(kRanks);
  const auto begin = [&](int rank, int priority) {
    buffers.push_back(std::make_unique<Buffers<float>>(ring(), rank));
    Call call = buffers.back()->call();
    call.priority = priority;
    requests[std::size_t(rank)].push_back(ranks[std::size_t(rank)].start(call));
  };
  std::vector<Places> ended(kRanks);
  Random random(seed);
  const auto step = [&](int times) {
    for (int i = 0; i < times; ++i) {
      const std::size_t r = random.below(kRanks);
      for (std::size_t k = 0; k < requests[r].size(); ++k)
        if (std::ranges::count(ended[r], int(k)) == 0 && requests[r][k].test())
          ended[r].push_back(int(k));
    }
  };
  for (int r = 0; r < kRanks; ++r) begin(r, priorities[0]);
  step(40);
  for (std::size_t k = 1; k < priorities.size(); ++k)
    for (int r = 0; r < kRanks; ++r) begin(r, priorities[k]);
  const auto is_over = [&](const Places& places) { return places.size() == priorities.size(); };
  for (int i = 0; i < 10000 && !std::ranges::all_of(ended, is_over); ++i) step(100);
  CHECK(std::ranges::all_of(ended, is_over));
  for (const auto& b : buffers) CHECK(b->check() == "");
  return ended;
}

// The same calls in the simulator, the later ones a little later.
std::vector<Places> as_simulated(const std::vector<int>& priorities) {
  const Shape shape{.ranks = kRanks, .cut = {.segments = kSegments, .window = 2}};
  const World world = make_world(find_algorithm(Collective::allreduce, "ring"), shape);
  Machine machine;
  machine.across = {1e-6, 1e-9};
  std::vector<SimulatedCall> calls;
  for (const int priority : priorities)
    calls.push_back({.world = &world, .count = kCount, .element_bytes = 4, .priority = priority,
                     .arrivals = std::vector<double>(kRanks, calls.empty() ? 0 : 1e-5)});
  const std::vector<Trace> traces = simulate(calls, machine);
  std::vector<Places> ended;
  for (std::size_t r = 0; r < kRanks; ++r) {
    Places places;
    for (std::size_t k = 0; k < traces.size(); ++k) places.push_back(int(k));
    std::ranges::sort(places, {}, [&](int k) { return traces[std::size_t(k)].exit_s[r]; });
    ended.push_back(places);
  }
  return ended;
}

TEST_CASE("priority: calls end as urgency has it, between ranks and in the simulator") {
  for (const std::vector<int>& priorities :
       {std::vector{0, 0, 0}, {0, 5, 0}, {0, 0, 5}, {-3, 0, 7}, {2, 1, 0}, {0, -1, 1}}) {
    Places expected{0, 1, 2};
    std::ranges::stable_sort(expected, std::ranges::greater(),
                             [&](int k) { return priorities[std::size_t(k)]; });
    for (const Places& places : as_simulated(priorities)) CHECK(places == expected);
    for (std::uint64_t seed = 1; seed <= std::uint64_t(test::by_length(1, 3, 20)); ++seed)
      for (const Places& places : as_run(priorities, seed)) {
        CAPTURE(seed);
        CHECK(places == expected);
      }
  }
}

TEST_CASE("priority: an urgent call waits for one message at most, wherever it begins") {
  const Shape shape{.ranks = kRanks, .cut = {.segments = kSegments, .window = 2}};
  const World world = make_world(find_algorithm(Collective::allreduce, "ring"), shape);
  Machine machine;
  machine.across = {1e-6, 1e-9};
  const double message_s = machine.across.time_s(double(4 * kCount / (kRanks * kSegments)));
  const double alone_s = simulate(world, kCount, 4, machine).span_s();
  for (int i = 1; i < 40; ++i) {
    const double begin_s = alone_s * i / 40;
    const std::vector<double> at_begin(kRanks, begin_s);
    const auto took_s = [&](int priority) {
      const auto traces = simulate({{.world = &world, .count = kCount, .element_bytes = 4},
                                    {&world, kCount, 4, priority, at_begin}}, machine);
      return *std::ranges::max_element(traces[1].exit_s) - begin_s;
    };
    CHECK(took_s(1) >= alone_s * (1 - 1e-9));
    CHECK(took_s(1) <= alone_s + 2 * message_s);   // one at the sender, one at the receiver
    if (i < 30) CHECK(took_s(0) > alone_s + 2 * message_s);
  }
}

// Chunks of a stream that are under way: before its peer has taken one, and afterwards.
constexpr std::size_t kUntaken = 2, kTaken = 4;

// Chunks on their way from one rank to another, without their announcements.
struct Ahead {
  std::size_t bytes = 0;
  std::set<int> streams = {};
};

Ahead ahead_of(int from, const MpiNet::Rank& to) {
  Ahead found;
  for (const MpiNet::Sent& one : to.coming)
    if (one.from == from && one.tag > 0) {
      found.bytes += one.bytes;
      found.streams.insert(one.tag);
    }
  return found;
}

// Only one stream to a peer is in full flow; others are those that it has yet to take.
bool is_within_credit(const Ahead& ahead) {
  const std::size_t others = std::max<std::size_t>(1, ahead.streams.size()) - 1;
  return ahead.bytes <= (kTaken + kUntaken * others) * kInPieces.chunk_bytes;
}

// Runs calls of one priority. Returns how often an urgent call would have found more than the
// credit ahead of it, and the most streams that it would have found.
std::pair<int, std::size_t> excess(std::size_t calls, std::uint64_t seed) {
  MpiNet net(kRanks, seed);
  WorldConfig config;
  config.progress = Progress::caller;
  std::vector<Communicator> ranks;
  for (int r = 0; r < kRanks; ++r)
    ranks.push_back(join_transport(mpi::make_transport(net.port(r), kInPieces), config));
  std::vector<std::unique_ptr<Buffers<float>>> buffers;
  std::vector<std::vector<Request>> requests(kRanks);
  for (std::size_t i = 0; i < calls * kRanks; ++i) {
    buffers.push_back(std::make_unique<Buffers<float>>(ring(), int(i % kRanks)));
    requests[i % kRanks].push_back(ranks[i % kRanks].start(buffers.back()->call()));
  }
  Random random(seed);
  std::pair<int, std::size_t> found{0, 0};
  for (std::size_t left = calls * kRanks, step = 0; left > 0 && step < 1000000; ++step) {
    std::vector<Request>& own = requests[random.below(kRanks)];
    left -= std::erase_if(own, [](Request& request) { return request.test(); });
    for (int pair = 0; pair < kRanks * kRanks; ++pair) {
      const Ahead ahead = ahead_of(pair / kRanks, net.ranks[std::size_t(pair % kRanks)]);
      found.first += !is_within_credit(ahead);
      found.second = std::max(found.second, ahead.streams.size());
    }
  }
  for (const auto& own : requests) CHECK(own.empty());
  for (const auto& b : buffers) CHECK(b->check() == "");
  return found;
}

TEST_CASE("priority: of less urgent calls a few chunks are ahead of an urgent one, and no more") {
  for (const std::size_t calls : {1, 2, 4})
    for (std::uint64_t seed = 1; seed <= std::uint64_t(test::by_length(1, 3, 40)); ++seed) {
      CAPTURE(calls);
      CAPTURE(seed);
      const auto [over, streams] = excess(calls, seed);
      CHECK(over == 0);
      CHECK(streams > 1);   // where one ends
    }
  CHECK(is_within_credit({6 * kInPieces.chunk_bytes, {1, 2}}));
  CHECK_FALSE(is_within_credit({8 * kInPieces.chunk_bytes, {1, 2}}));   // each for itself
}

TEST_CASE("priority: calls of different ranks are not simulated together") {
  const World three = make_world(find_algorithm(Collective::allreduce, "ring"), {.ranks = 3});
  const World four = make_world(find_algorithm(Collective::allreduce, "ring"), {.ranks = 4});
  CHECK_THROWS_WITH_AS(simulate({{&three, 8, 4}, {&four, 8, 4}}, Machine{}),
                       "simulate: calls of 3 and of 4 ranks; calls under way at a time are of the "
                       "same ranks.", Error);
  CHECK(simulate(std::vector<SimulatedCall>{}, Machine{}).empty());
}

}  // namespace
}  // namespace paceline
