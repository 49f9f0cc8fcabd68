// The same call started again: it skips checks and choice, and is a call of its own in all else.
#include <doctest/doctest.h>

#include "world/rank_threads.hpp"

namespace paceline {
namespace {

using Floats = std::vector<float>;
constexpr std::size_t kCount = 100;
constexpr int kOutstanding = 12;   // more than a call's operations that are kept

Call sum_of(const Floats& in, Floats& out) {
  Call call{Collective::allreduce, Type::f32, Op::sum};
  call.input = in.data();
  call.output = out.data();
  call.count = in.size();
  return call;
}

float value(int rank, int round, int call, std::size_t i) {
  return float(rank + 1) * float(1 + i % 7) + float(100 * round + 10 * call);
}

// Starts many, waits in another order and keeps the requests of the round before meanwhile.
void start_rounds(int rank, Communicator world) {
  std::vector<Request> before;
  for (int round = 0; round < 20; ++round) {
    std::vector<Floats> in(kOutstanding, Floats(kCount)), out(kOutstanding, Floats(kCount));
    std::vector<Request> requests;
    for (int c = 0; c < kOutstanding; ++c) {
      for (std::size_t i = 0; i < kCount; ++i)
        in[std::size_t(c)][i] = value(rank, round, c, i);
      const bool in_place = c % 3 == 2;
      if (in_place) out[std::size_t(c)] = in[std::size_t(c)];
      requests.push_back(world.start(sum_of(in_place ? out[std::size_t(c)] : in[std::size_t(c)],
                                            out[std::size_t(c)])));
    }
    for (int c = kOutstanding; c-- > 0;) requests[std::size_t(c)].wait();
    for (Request& request : before) request.wait();   // over, even if another call runs it
    for (int c = 0; c < kOutstanding; ++c)
      for (std::size_t i = 0; i < kCount; ++i) {
        float sum = 0;
        for (int r = 0; r < world.size(); ++r) sum += value(r, round, c, i);
        if (out[std::size_t(c)][i] != sum)
          fail(Fault::internal, "round ", round, ", call ", c, ": ", out[std::size_t(c)][i],
               " instead of ", sum);
      }
    before = std::move(requests);
  }
}

}  // namespace

TEST_CASE("again: many of one call under way, whose requests are held, have their own results") {
  for (int ranks : {1, 2, 3}) CHECK(test::run_ranks(ranks, start_rounds) == "");
}

TEST_CASE("again: blocking calls between nodes, among started ones, have their own results") {
  const auto live = [](int rank, Communicator world) {
    for (int round = 0; round < 50; ++round) {
      Floats in(kCount), out(kCount), started_in(kCount, 1), started_out(kCount);
      for (std::size_t i = 0; i < kCount; ++i) in[i] = value(rank, round, 0, i);
      Request request;
      if (round % 3 == 1) request = world.start(sum_of(started_in, started_out));
      world.run(sum_of(in, out));
      if (request.valid()) request.wait();
      for (std::size_t i = 0; i < kCount; ++i) {
        float sum = 0;
        for (int r = 0; r < world.size(); ++r) sum += value(r, round, 0, i);
        if (out[i] != sum || (request.valid() && started_out[i] != float(world.size())))
          fail(Fault::internal, "round ", round, ": ", out[i], " instead of ", sum);
      }
    }
  };
  CHECK(test::run_ranks(3, live, {0, 1, 2}) == "");
  CHECK(test::run_ranks(4, live, {0, 0, 1, 1}) == "");
}

TEST_CASE("again: a wrong call after a right one is refused, and a name is the call's own") {
  CHECK(test::run_ranks(2, [](int rank, Communicator world) {
    Floats in(kCount, 1), out(kCount);
    Call call = sum_of(in, out);
    for (int i = 0; i < 3; ++i) world.start(call).wait();
    Call wrong = call;
    wrong.output = nullptr;
    const std::string refused = test::expect_fault(
        Fault::usage, {"a buffer is missing"}, [&] { world.start(wrong); });
    if (!refused.empty()) fail(Fault::internal, refused);
    call.label = "weights";
    if (rank == 1) return;
    world.set_timeout(200);
    Request request = world.start(call);
    const std::string late = test::expect_fault(
        Fault::timeout, {"weights"}, [&] { request.wait(); });
    if (!late.empty()) fail(Fault::internal, late);
  }) == "");
}

}  // namespace paceline
