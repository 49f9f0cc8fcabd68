// Calls under way at a time between ranks of a node: the most urgent goes first, of messages to a
// peer and in shared memory. Between nodes: tests/world/priority_test.cpp.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "process/ranks.hpp"

namespace paceline {
namespace {

using test::await_note;
using test::join;
using test::note;
using test::run_ranks;

constexpr int kRanks = 2;
constexpr std::size_t kCount = 1 << 20;   // longer than a ring, several times

// Rank 0 sends a message for each call, and goes on only when all are under way on both ranks: they
// then come in the order of its queue. The first one, which is in the ring by then, is overtaken at
// the border of a piece.
std::string come_in(const std::vector<int>& expected, int rank, const std::string& folder,
                    const std::vector<int>& priorities) {
  Communicator world = join(rank, kRanks, folder, 20000, Progress::caller);
  std::vector<std::vector<float>> data;
  std::vector<Request> requests;
  std::vector<int> ended;
  if (rank == 1) await_note(folder, "0 has begun");
  for (const int priority : priorities) {
    const int number = int(data.size());
    data.emplace_back(kCount, rank == 0 ? float(number) : -1.0f);
    Call call{.collective = Collective::broadcast, .type = Type::f32};
    call.input = call.output = data.back().data();
    call.count = kCount;
    call.algorithm = "binomial";
    call.priority = priority;
    requests.push_back(world.start(call));
    requests.back().on_complete([&ended, number](bool) { ended.push_back(number); });
  }
  note(folder, str(rank, " has begun"));
  await_note(folder, str(1 - rank, " has begun"));
  for (Request& request : requests) request.wait();
  world.start({.collective = Collective::barrier}).wait();   // what has ended has been told by then
  for (std::size_t k = 0; k < data.size(); ++k)
    if (std::count(data[k].begin(), data[k].end(), float(k)) != std::ptrdiff_t(kCount))
      return str("call ", k, " has wrong data on rank ", rank);
  std::string order;
  for (const int number : ended) order += str(number, " ");
  return ended == expected ? "" : str("on rank ", rank, " they ended in the order ", order);
}

TEST_CASE("priority: of messages to a peer of the node the most urgent goes first") {
  struct {
    std::vector<int> priorities, expected;
  } const cases[] = {{{0, 0, 0}, {0, 1, 2}},
                     {{0, 0, 5}, {2, 0, 1}},
                     {{0, 5, 0, 9}, {3, 1, 0, 2}},
                     {{-3, -2, -1, -2}, {2, 1, 3, 0}}};
  for (const auto& one : cases) {
    const std::string bad = run_ranks(kRanks, 60, [&](int rank, const std::string& folder) {
      return come_in(one.expected, rank, folder, one.priorities);
    });
    CHECK_MESSAGE(bad.empty(), bad);
  }
}

// Rank 0 is in both calls and waits in them. Rank 1 comes to the first one, and has but begun its
// sums when it comes to the second.
std::string overtakes(int rank, const std::string& folder, const std::vector<int>& priorities,
                      const std::vector<int>& expected) {
  Communicator world = join(rank, kRanks, folder, 20000, Progress::caller);
  std::vector<std::vector<float>> data;
  std::vector<Request> requests;
  std::vector<int> ended;
  if (rank == 1) await_note(folder, "0 has begun");
  for (const int priority : priorities) {
    const int number = int(data.size());
    data.emplace_back(kCount, float(number + rank));
    Call call{.collective = Collective::allreduce, .type = Type::f32};
    call.input = call.output = data.back().data();
    call.count = number == 0 ? kCount : kCount / 4;
    call.algorithm = "two_shot";
    call.cut.knobs.blocks = number == 0 ? 32 : 4;
    call.priority = priority;
    requests.push_back(world.start(call));
    requests.back().on_complete([&ended, number](bool) { ended.push_back(number); });
  }
  if (rank == 0) note(folder, "0 has begun");
  for (Request& request : requests) request.wait();
  world.start({.collective = Collective::barrier}).wait();
  for (std::size_t k = 0; k < data.size(); ++k) {
    const std::size_t count = k == 0 ? kCount : kCount / 4;
    const auto sums = std::ptrdiff_t(count);
    if (std::count(data[k].begin(), data[k].begin() + sums, float(2 * k + 1)) != sums)
      return str("call ", k, " has wrong data on rank ", rank);
  }
  std::string order;
  for (const int number : ended) order += str(number, " ");
  return ended == expected ? "" : str("on rank ", rank, " they ended in the order ", order);
}

TEST_CASE("priority: in shared memory an urgent call overtakes the one before it") {
  struct {
    std::vector<int> priorities, expected;
  } const cases[] = {{{0, 0}, {0, 1}}, {{0, 5}, {1, 0}}, {{-3, -2}, {1, 0}}, {{0, 5, 5}, {1, 2, 0}},
                     {{5, 0, 9}, {2, 0, 1}}};
  for (const auto& one : cases) {
    const std::string bad = run_ranks(kRanks, 60, [&](int rank, const std::string& folder) {
      return overtakes(rank, folder, one.priorities, one.expected);
    });
    CHECK_MESSAGE(bad.empty(), bad);
  }
}

// Each rank waits in another channel for the other one.
TEST_CASE("priority: ranks that give a call different priorities get a mismatch") {
  const std::string bad = run_ranks(kRanks, 60, [&](int rank, const std::string& folder) {
    Communicator world = join(rank, kRanks, folder, 20000);
    float value = 1;
    Call call{.collective = Collective::allreduce, .type = Type::f32};
    call.input = call.output = &value;
    call.count = 1;
    call.priority = rank;
    try {
      world.run(call);
    } catch (const Error& error) {
      const bool is_told = std::string(error.what()).find("priority") != std::string::npos;
      return error.fault() == Fault::mismatch && is_told ? std::string() : str(error.what());
    }
    return str("rank ", rank, " was not told");
  });
  CHECK_MESSAGE(bad.empty(), bad);
}

}  // namespace
}  // namespace paceline
