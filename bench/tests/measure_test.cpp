// Measuring: ranks start together, sides take turns on inputs written anew, probes find numbers.
#include <doctest/doctest.h>

#include <array>
#include <string>
#include <thread>

#include "native/probes.hpp"
#include "native/series.hpp"

namespace paceline::measure {
namespace {

struct Memory {
  std::vector<Lane> lanes;
  explicit Memory(int ranks) : lanes(StartLine::bytes(ranks) / sizeof(Lane)) {}
};

// action(line) on so many threads, each with its own seat.
template <class Action>
void together(int ranks, bool oversubscribed, const Action& action) {
  Memory memory(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      StartLine line(memory.lanes.data(), rank, ranks, oversubscribed);
      action(line);
    });
  for (std::thread& thread : threads) thread.join();
}

TEST_CASE("all ranks start at one moment, and none before it") {
  for (const auto& [oversubscribed, hot] : {std::pair{false, false}, {true, false},
                                            {false, true}}) {
    std::array<std::array<std::int64_t, 5>, 3> moments{};
    std::atomic<int> early = 0;
    together(3, oversubscribed, [&, hot = hot](StartLine& line) {
      for (std::int64_t& moment : moments[std::size_t(line.rank())]) {
        moment = hot ? line.start_hot() : line.start();
        early += now_ns() < moment;
      }
    });
    CHECK(early == 0);
    CHECK(moments[0] == moments[1]);
    CHECK(moments[0] == moments[2]);
    for (std::size_t i = 1; i < 5; ++i) CHECK(moments[0][i] > moments[0][i - 1]);
  }
}

TEST_CASE("what a waiting rank calls may end the wait") {
  Memory memory(2);
  StartLine line(memory.lanes.data(), 0, 2, false, [] { throw 17; });
  CHECK_THROWS_AS(line.barrier(), int);
}

TEST_CASE("sides take turns, each on an input written anew before a batch and not within it") {
  Memory memory(1);
  StartLine line(memory.lanes.data(), 0, 1, false);
  const std::array<char, 3> pattern{'p', 'q', 'r'};
  std::array<char, 3> input{};
  std::string order, seen;
  const auto side = [&](char name) {
    return Side{[&, name] {
                  order += name;
                  seen += input[2];
                  input[2] = '-';
                },
                [&] { input = pattern; }, name == 'c' ? 1 : 2};
  };
  const auto times = alternate(line, {side('a'), side('b'), side('c')}, {1, 3});
  CHECK(order == "aabbc" "bbcaa" "caabb" "aabbc");
  CHECK(seen == "r-r-r" "r-rr-" "rr-r-" "r-r-r");
  REQUIRE(times.size() == 3);
  for (const auto& one : times) CHECK(one.size() == 3);
}

// A clock of the test's own, which notes what the input was at each look.
std::int64_t model_ns = 0;
std::array<char, 3> watched{};
std::string seen_by_clock;

std::int64_t model_clock() {
  seen_by_clock += watched[2];
  return model_ns;
}

TEST_CASE("a time is that of one call, and the writing of inputs is no part of it") {
  Memory memory(1);
  StartLine line(memory.lanes.data(), 0, 1, false);
  const std::array<char, 3> pattern{'p', 'q', 'r'};
  const auto call = [] {
    model_ns += 4000;
    watched[2] = '-';
  };
  const auto times = alternate(
      line, {{call, [&] { watched = pattern; }, 2}, {[] {}, {}}}, {0, 3}, model_clock);
  for (const double called : times[0]) CHECK(called == doctest::Approx(4e-6));
  for (const double nothing : times[1]) CHECK(nothing == 0);
  CHECK(seen_by_clock == "r---" "--r-" "r---");   // written before a batch begins
}

TEST_CASE("probes find numbers, and none where ranks take turns on the cores") {
  std::array<double, 3> trips{-1, -1, -1}, oversubscribed{-1, -1, -1};
  std::array<double, 3> rates{};
  together(2, false, [&](StartLine& line) {
    trips[std::size_t(line.rank())] = round_trip_ns(line);
    std::vector<char> from(1 << 16), to(1 << 16);
    rates[std::size_t(line.rank())] = rate(line, 2 << 16, [&] { to = from; });
  });
  together(3, true, [&](StartLine& line) {
    oversubscribed[std::size_t(line.rank())] = round_trip_ns(line);
  });
  CHECK(trips[0] > 1);
  CHECK(trips[1] > 1);
  CHECK(oversubscribed == std::array<double, 3>{});
  for (std::size_t rank : {0, 1}) {
    CHECK(rates[rank] > 1e5);
    CHECK(rates[rank] < 1e13);
  }
}

}  // namespace
}  // namespace paceline::measure
