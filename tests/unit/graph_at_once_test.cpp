// The dependency engine: short tasks for which no thread of a pool is woken.
#include <doctest/doctest.h>

#include <stdexcept>
#include <thread>
#include <vector>

#include "graph/engine.hpp"

using namespace paceline;
using namespace paceline::graph;

namespace {

// Pushes a task that ends when the test completes it.
Task push_open(Engine& engine, const Variable& x, std::vector<Completion>& open) {
  return engine.push_asynchronous([&open](Completion completion) { open.push_back(completion); },
                                  {.write = {x}, .at_once = true});
}

}  // namespace

TEST_CASE("graph: a short task that nothing holds up runs in the thread that pushes it") {
  Engine engine({});
  const Variable x = engine.variable("x");
  std::thread::id ran;
  const auto work = [&] { ran = std::this_thread::get_id(); };
  const Task task = engine.push(work, {.write = {x}, .at_once = true});
  CHECK(engine.is_complete(task));
  CHECK(ran == std::this_thread::get_id());
  engine.wait(engine.push(work, {.write = {x}}));
  CHECK(ran != std::this_thread::get_id());
}

TEST_CASE("graph: short tasks run in the thread that ends what they wait for") {
  Engine engine({});
  const Variable x = engine.variable("x");
  std::vector<Completion> open;
  push_open(engine, x, open);
  std::thread::id ran;
  const Task task = engine.push([&] { ran = std::this_thread::get_id(); },
                                {.read = {x}, .at_once = true});
  CHECK_FALSE(engine.is_complete(task));
  std::thread ends([&] {
    open.at(0).done();
    CHECK(engine.is_complete(task));
    CHECK(ran == std::this_thread::get_id());
  });
  ends.join();
}

TEST_CASE("graph: a long chain of short tasks does not nest") {
  Engine engine({});
  const Variable x = engine.variable("x");
  std::vector<Completion> open;
  push_open(engine, x, open);
  constexpr int kTasks = 200'000;   // nested they would need more stack than there is
  int done = 0;
  for (int i = 0; i < kTasks; ++i)
    engine.push_asynchronous(
        [&done](const Completion& completion) {
          ++done;
          completion.done();
        },
        {.write = {x}, .at_once = true});
  CHECK(done == 0);
  open.at(0).done();
  CHECK(done == kTasks);
  engine.wait_all();
}

TEST_CASE("graph: a short task whose operand failed is skipped where it would have run") {
  Engine engine({});
  const Variable x = engine.variable("x");
  std::vector<Completion> open;
  push_open(engine, x, open);
  bool ran = false, skipped = false;
  TaskSpec spec{.read = {x}, .at_once = true};
  spec.skipped = [&](const std::exception_ptr&) { skipped = true; };
  const Task task = engine.push([&] { ran = true; }, std::move(spec));
  open.at(0).failed(std::make_exception_ptr(std::runtime_error("no gradient")));
  CHECK_FALSE(ran);
  CHECK(skipped);
  CHECK_THROWS_WITH(engine.wait(task), "no gradient");
  engine.push([&] { ran = true; }, {.read = {x}, .at_once = true});   // a wait has told
  CHECK(ran);
  engine.push([] { throw std::runtime_error("here"); }, {.at_once = true});
  CHECK_THROWS_WITH(engine.wait_all(), "here");
}
