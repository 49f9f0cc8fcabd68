// Calls under way at a time between ranks of a node: of messages to a peer the most urgent goes
// first. Between nodes: tests/world/priority_test.cpp.
#include <doctest/doctest.h>

#include <memory>
#include <vector>

#include "process/ranks.hpp"
#include "world/cases.hpp"

namespace paceline {
namespace {

using test::await_note;
using test::Buffers;
using test::Case;
using test::join;
using test::note;
using test::run_ranks;

constexpr int kRanks = 2;
constexpr std::size_t kCount = 1 << 20;   // longer than a ring, many times

// Both ranks begin the calls, one after the other and while the peer looks at none of them, and
// then wait for all. Which of them ends first.
std::string first_to_end(int rank, const std::string& folder, const std::vector<int>& priorities,
                         int expected) {
  Communicator world = join(rank, kRanks, folder, 20000, Progress::caller);
  std::vector<std::unique_ptr<Buffers<float>>> buffers;
  std::vector<Request> requests;
  std::vector<int> ended;
  Case c;
  c.algorithm = "ring";
  c.ranks = kRanks;
  c.count = kCount;
  if (rank == 1) await_note(folder, "0 has begun");
  for (const int priority : priorities) {
    buffers.push_back(std::make_unique<Buffers<float>>(c, rank));
    Call call = buffers.back()->call();
    call.priority = priority;
    requests.push_back(world.start(call));
    requests.back().on_complete([&ended, k = int(requests.size()) - 1](bool) {
      ended.push_back(k);
    });
  }
  note(folder, str(rank, " has begun"));
  await_note(folder, str(1 - rank, " has begun"));
  for (Request& request : requests) request.wait();
  world.start({.collective = Collective::barrier}).wait();   // what has ended has been told by then
  for (const auto& b : buffers)
    if (const std::string wrong = b->check(); !wrong.empty()) return wrong;
  if (ended.size() == requests.size() && ended.front() == expected) return {};
  return str("call ", ended.front(), " ended first on rank ", rank, ", and not call ", expected);
}

TEST_CASE("priority: of messages to a peer of the node the most urgent goes first") {
  struct {
    std::vector<int> priorities;
    int first;
  } const cases[] = {{{0, 0, 0}, 0}, {{0, 0, 5}, 2}, {{0, 5, 0}, 1}, {{-3, -1, -2}, 1}};
  for (const auto& one : cases) {
    const std::string bad = run_ranks(kRanks, 60, [&](int rank, const std::string& folder) {
      return first_to_end(rank, folder, one.priorities, one.first);
    });
    CHECK_MESSAGE(bad.empty(), bad);
  }
}

}  // namespace
}  // namespace paceline
