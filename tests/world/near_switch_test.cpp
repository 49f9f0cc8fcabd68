// Calls of a node that may go by arrival, with ranks as threads whose calls other threads drive:
// data races between writes into their stages and explain().
#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "base/str.hpp"
#include "bootstrap/open_world.hpp"
#include "loop/loop.hpp"
#include "world/worlds.hpp"

namespace paceline {
namespace {

constexpr int kRanks = 3;
constexpr std::size_t kElements = 6000;

// Returns what went wrong; `explained`: explain() after the last call.
std::string play(Communicator& world, std::string& explained) {
  std::vector<std::int32_t> buffer(kElements);
  Call call{.collective = Collective::allreduce, .type = Type::i32, .op = Op::sum};
  call.input = call.output = buffer.data();
  call.count = buffer.size();
  for (int turn = 0; turn < test::by_length(60, 200, 1000); ++turn) {
    std::fill(buffer.begin(), buffer.end(), world.rank() + turn);
    if (turn % 40 < 20 && world.rank() == 1)
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    Request request = world.start(call);
    explained = world.explain(call);   // while a thread of its own decides
    request.wait();
    for (const std::int32_t sum : buffer)
      if (sum != 3 + kRanks * turn) return str("turn ", turn, ": ", sum);
  }
  explained = world.explain(call);
  return {};
}

}  // namespace

TEST_CASE("near: threads that drive calls decide alike, beside those that ask") {
  LoopNet net(kRanks, {});
  std::vector<std::string> wrong(kRanks), explained(kRanks);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < kRanks; ++rank)
    ranks.emplace_back([&, rank] {
      try {
        WorldConfig config;
        config.progress = Progress::thread;
        config.arrival = "auto";
        config.timeout_ms = 60000;
        Communicator world = join_transport(net.endpoint(rank), config);
        wrong[std::size_t(rank)] = play(world, explained[std::size_t(rank)]);
      } catch (const std::exception& error) {
        wrong[std::size_t(rank)] = error.what();
      }
    });
  for (std::thread& rank : ranks) rank.join();
  for (const std::string& one : wrong) CHECK(one == "");
  for (const std::string& one : explained) CHECK(one == explained[0]);
  CHECK_MESSAGE(explained[0].find("arrivals in the node, of ") != std::string::npos, explained[0]);
}

}  // namespace paceline
