// Collectives as tasks: the order of calls, and the peers' error for a call that is not made.
#include <doctest/doctest.h>

#include <future>
#include <string>
#include <vector>

#include "expect_fault.hpp"
#include "graph/engine.hpp"
#include "tasks/collective.hpp"
#include "world/rank_threads.hpp"

namespace paceline {
namespace {

constexpr std::size_t kLength = 100;

Call allreduce(std::vector<double>& data) {
  Call call;
  call.collective = Collective::allreduce;
  call.type = Type::f64;
  call.op = Op::sum;
  call.input = call.output = data.data();
  call.count = data.size();
  return call;
}

}  // namespace

TEST_CASE("tasks: calls are made in the order in which they are pushed, on all ranks") {
  CHECK(test::run_ranks(3, [](int rank, Communicator world) {
    std::vector<std::vector<double>> data;
    std::vector<graph::Variable> ready;
    graph::Engine engine({.compute = 1});
    tasks::Calls calls(engine, world);
    // One thread gets the operands ready, once all are there, in another order on every rank.
    std::promise<void> all_pushed;
    engine.push([&] { all_pushed.get_future().wait(); }, {});
    for (int i = 0; i < 7; ++i) {
      data.emplace_back(kLength, i + 10.0 * rank);
      ready.push_back(engine.variable(str("operand ", i)));
      engine.push([] {}, {.write = {ready.back()}, .priority = i * (rank + 1) % 7});
    }
    for (std::size_t i = 0; i < data.size(); ++i)
      calls.push(allreduce(data[i]), {.name = str("call ", i), .write = {ready[i]}});
    all_pushed.set_value();
    for (std::size_t i = 0; i < data.size(); ++i) {
      engine.wait(ready[i], nullptr);
      const double sum = 3.0 * double(i) + 30;
      if (data[i] != std::vector<double>(kLength, sum)) fail(Fault::internal, "call ", i);
    }
    engine.close();
  }) == "");
}

TEST_CASE("tasks: a call whose operand fails is not made, and its peers hear why") {
  CHECK(test::run_ranks(2, [](int rank, Communicator world) {
    std::vector<double> data(kLength, 1.0);
    graph::Engine engine({});
    tasks::Calls calls(engine, world);
    const graph::Variable operand = engine.variable("operand");
    if (rank == 1)
      engine.push([] { fail(Fault::usage, "no such operand"); }, {.write = {operand}});
    calls.push(allreduce(data), {.name = "gradients", .write = {operand}});
    test::expect_told(rank, "no such operand", {"allreduce 'gradients'", "no such operand"},
                      [&] { engine.wait(operand, nullptr); });
    engine.close();
  }) == "");
}

TEST_CASE("tasks: a call that is refused is told to the peers that made theirs") {
  CHECK(test::run_ranks(2, [](int rank, Communicator world) {
    std::vector<double> data(kLength, 1.0);
    graph::Engine engine({});
    tasks::Calls calls(engine, world);
    const graph::Variable operand = engine.variable("operand");
    Call call = allreduce(data);
    if (rank == 1) call.algorithm = "rnig";
    calls.push(call, {.name = "gradients", .write = {operand}});
    test::expect_told(rank, "rnig", {"which was refused", "rnig"},
                      [&] { engine.wait(operand, nullptr); });
    engine.close();
  }) == "");
}

TEST_CASE("tasks: help() drives a call that is under way, and does nothing without one") {
  CHECK(test::run_ranks(2, [](int rank, Communicator world) {
    std::vector<double> data(kLength, rank + 1.0);
    graph::Engine engine({});
    tasks::Calls calls(engine, world);
    if (calls.help(1)) fail(Fault::internal, "help() found a call");
    const graph::Variable operand = engine.variable("operand");
    const graph::Task call = calls.push(allreduce(data), {.write = {operand}});
    while (!engine.is_complete(call)) calls.help(1);
    if (data[0] != 3) fail(Fault::internal, "the sum is ", data[0]);
    engine.close();
  }) == "");
}

TEST_CASE("tasks: a communicator without a progress thread is refused") {
  LoopNet net(1, {});
  graph::Engine engine({});
  WorldConfig config;
  config.progress = Progress::caller;
  const Communicator world = join_transport(net.endpoint(0), config);
  CHECK(test::expect_fault(Fault::refusal, {"PACELINE_PROGRESS=thread"},
                           [&] { tasks::Calls(engine, world); }) == "");
  engine.close();
}

}  // namespace paceline
