// Requests that outlive their communicator: what goes wrong with them reaches them, on every rank.
#include <doctest/doctest.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "process/ranks.hpp"

namespace paceline {
namespace {

using test::expect_fault;
using test::run_ranks;

constexpr int kRanks = 2;

struct Way {
  const char* what;
  Progress progress;
  const char* algorithm;   // messages or shared memory
};

const Way kWays[] = {{"caller, messages", Progress::caller, "ring"},
                     {"thread, messages", Progress::thread, "ring"},
                     {"caller, shared memory", Progress::caller, ""},
                     {"thread, shared memory", Progress::thread, ""}};

Call allreduce(std::vector<float>& data, Op op, const Way& way, std::size_t count) {
  Call call;
  call.collective = Collective::allreduce;
  call.type = Type::f32;
  call.op = op;
  call.input = call.output = data.data();
  call.count = count;
  call.algorithm = way.algorithm;
  return call;
}

Communicator join_as(int rank, const std::string& folder, const Way& way) {
  return test::join(rank, kRanks, folder, 20000, way.progress);
}

// Rank 0 closes the communicator with a request of its under way.
Request orphan(Communicator& world, std::vector<float>& data, const Way& way) {
  Communicator part = world.dup();
  return part.start(allreduce(data, Op::sum, way, data.size()));
}

void check(const Way& way, int ranks,
           const std::function<std::string(int, const std::string&)>& body) {
  const std::string bad = run_ranks(ranks, 30, body);
  CHECK_MESSAGE(bad.empty(), std::string(way.what) << ": " << bad);
}

TEST_CASE("a mismatch reaches a request whose communicator is gone, and its peer") {
  for (const Way& way : kWays)
    for (const Op op : {Op::max, Op::sum})   // another operation, or another count
      check(way, kRanks, [&](int rank, const std::string& folder) -> std::string {
        Communicator world = join_as(rank, folder, way);
        std::vector<float> data(1000, 1.0f);
        const auto fails = [&] {
          if (rank == 0) {
            Request request = orphan(world, data, way);
            std::this_thread::sleep_for(std::chrono::milliseconds(200));   // the thread's turn
            request.wait();
          } else {
            Communicator part = world.dup();
            part.run(allreduce(data, op, way, op == Op::sum ? 500 : 1000));
          }
        };
        return expect_fault(Fault::mismatch, {"rank 0", "rank 1", "allreduce"}, fails);
      });
}

TEST_CASE("an abort of a peer reaches a request whose communicator is gone") {
  for (const Way& way : kWays)
    check(way, 3, [&](int rank, const std::string& folder) -> std::string {
      Communicator world = test::join(rank, 3, folder, 20000, way.progress);
      std::vector<float> data(1000, 1.0f);
      Request request;
      {
        Communicator part = world.dup();
        Call call = allreduce(data, Op::sum, way, data.size());
        if (rank == 1) call.timeout_ms = 1000;   // rank 2 does not come
        if (rank < 2) request = part.start(call);
      }
      std::string bad;
      if (rank < 2)
        bad = expect_fault(Fault::timeout, {"rank 1 has waited 1 s"}, [&] { request.wait(); });
      world.run({.collective = Collective::barrier});
      return bad;
    });
}

TEST_CASE("a request whose communicator is gone ends well where nothing goes wrong") {
  for (const Way& way : kWays)
    check(way, kRanks, [&](int rank, const std::string& folder) -> std::string {
      Communicator world = join_as(rank, folder, way);
      std::vector<float> data(1000, 1.0f);
      std::string bad;
      for (int turn = 0; turn < 3 && bad.empty(); ++turn) {
        std::fill(data.begin(), data.end(), 1.0f);
        orphan(world, data, way).wait();
        if (data[999] != kRanks) bad = str("the sum is ", data[999]);
      }
      return bad;
    });
}

// Mappings of files whose names are gone, as a world's are. A sanitizer has such, too.
std::size_t nameless() {
  std::ifstream maps("/proc/self/maps");
  std::size_t found = 0;
  for (std::string line; std::getline(maps, line);)
    found += line.find("(deleted)") != line.npos && line.find("/tsan.") == line.npos;
  return found;
}

// Nobody waits for it: the thread ends the session together with its last call.
TEST_CASE("a call may outlive all that was held of its world") {
  std::vector<float> data(1000, 1.0f);
  const Way& way = kWays[1];
  check(way, kRanks, [&](int rank, const std::string& folder) -> std::string {
    {
      Communicator world = join_as(rank, folder, way);
      std::this_thread::sleep_for(std::chrono::milliseconds(200 * rank));
      (void)world.start(allreduce(data, Op::sum, way, data.size()));
    }
    for (int look = 0; look < 1000 && nameless() > 0; ++look) usleep(10'000);
    if (nameless() > 0) return "the world is still there";
    if (test::kHasSanitizer) return "";   // it sees no order in that, and so a race
    return data[999] == kRanks ? "" : str("the sum is ", data[999]);
  });
}

}  // namespace
}  // namespace paceline
