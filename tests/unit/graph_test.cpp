// The dependency engine: order by reads and writes, failures, cancelling, pools, the end.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "base/random.hpp"
#include "graph/engine.hpp"

using namespace paceline;
using namespace paceline::graph;

namespace {

// Holds tasks back until it is opened.
class Gate {
 public:
  void open() { open_ = true; }
  void pass() const {
    while (!open_) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }

 private:
  std::atomic<bool> open_{false};
};

std::string message_of(const std::exception_ptr& error) try {
  if (error) std::rethrow_exception(error);
  return {};
} catch (const std::exception& e) {
  return e.what();
}

template <class Action>
std::string thrown_by(Action&& action) try {
  action();
  return {};
} catch (const std::exception& e) {
  return e.what();
}

void nothing() {}

}  // namespace

TEST_CASE("graph: a reader sees what the writer before it wrote") {
  Engine engine({.compute = 3});
  const Variable x = engine.variable("x"), y = engine.variable("y");
  int a = 0, b = 0;
  std::atomic<int> seen{0};
  engine.push([&] { a = 1; }, {.write = {x}});
  for (int i = 0; i < 10; ++i) engine.push([&] { seen += a; }, {.read = {x}});
  engine.push([&] { b = a + 1; }, {.read = {x}, .write = {y}});
  engine.push([&] { a = 5; }, {.write = {x}});
  const Task last = engine.push([&] { b += a; }, {.read = {x}, .write = {y}});
  engine.wait(last);
  CHECK(b == 7);
  engine.wait_all();
  CHECK(seen == 10);
}

TEST_CASE("graph: readers run together, writers one at a time") {
  Engine engine({.compute = 2});
  const Variable x = engine.variable();
  Gate gate;
  std::atomic<int> inside{0}, most{0};
  const auto read = [&] {
    most = std::max(most.load(), ++inside);
    gate.pass();
  };
  const Task first = engine.push(read, {.read = {x}}), second = engine.push(read, {.read = {x}});
  while (inside < 2) std::this_thread::yield();   // hangs if they exclude each other
  bool has_written = false;
  const Task write = engine.push([&] { has_written = true; }, {.write = {x}});
  CHECK_FALSE(engine.is_complete(write));
  gate.open();
  engine.wait(write);
  CHECK(engine.is_complete(first));
  CHECK(engine.is_complete(second));
  CHECK(has_written);
}

TEST_CASE("graph: the most urgent of the tasks that could run runs first") {
  Engine engine({});
  Gate gate;
  std::string order;
  engine.push([&] { gate.pass(); }, {.priority = 100});
  for (const auto& [name, priority] : {std::pair{'a', 0}, {'b', 2}, {'c', 1}, {'d', 2}})
    engine.push([&order, name = name] { order += name; }, {.priority = priority});
  gate.open();
  engine.wait_all();
  CHECK(order == "bdca");
}

TEST_CASE("graph: pools do not wait for each other") {
  Engine engine({});
  Gate gate;
  engine.push([&] { gate.pass(); }, {});
  const Task copy = engine.push(nothing, {.pool = Pool::copy});
  const Task call = engine.push(nothing, {.pool = Pool::communication});
  engine.wait(copy);   // hangs if the compute pool's thread had to run it
  engine.wait(call);
  gate.open();
  engine.wait_all();
}

TEST_CASE("graph: a failure reaches all that depend on it, and the caller once") {
  Engine engine({.compute = 2});
  const Variable x = engine.variable(), y = engine.variable(), z = engine.variable();
  bool ran = false;
  std::string skipped;
  const auto bad = [] { throw std::runtime_error("no gradient"); };
  engine.push(bad, {.read = {z}, .write = {x}});
  const Task second = engine.push([&] { ran = true; },
                                  {.read = {x}, .write = {y},
                                   .skipped = [&](const std::exception_ptr& e) {
                                     skipped = message_of(e);
                                   }});
  const Task third = engine.push([&] { ran = true; }, {.write = {y}});
  bool other_ran = false;
  const Task other = engine.push([&] { other_ran = true; }, {.write = {z}});   // z was only read
  CHECK(thrown_by([&] { engine.wait(third); }) == "no gradient");
  CHECK(message_of(engine.error(second)) == "no gradient");
  CHECK(skipped == "no gradient");
  CHECK_FALSE(ran);
  engine.wait(other);
  CHECK(other_ran);
  engine.wait(engine.push([&] { ran = true; }, {.read = {x}, .write = {y}}));   // it has been told
  CHECK(ran);
  engine.wait_all();
}

TEST_CASE("graph: wait_all throws what no wait has thrown, and forgives") {
  Engine engine({});
  const Variable x = engine.variable();
  engine.push([] { throw std::runtime_error("first"); }, {.write = {x}});
  engine.push([] { throw std::runtime_error("second"); }, {});
  CHECK(thrown_by([&] { engine.wait_all(); }) == "first");
  engine.push(nothing, {.read = {x}});
  engine.wait_all();
}

TEST_CASE("graph: tasks that were pushed before a failure was told still fail") {
  Engine engine({});
  const Variable x = engine.variable();
  Gate gate;
  const Task bad = engine.push([] { throw std::runtime_error("bad"); }, {.write = {x}});
  engine.push([&] { gate.pass(); }, {});   // holds back what follows
  bool ran = false;
  const Task late = engine.push([&] { ran = true; }, {.read = {x}});
  CHECK(thrown_by([&] { engine.wait(bad); }) == "bad");
  gate.open();
  CHECK(thrown_by([&] { engine.wait(late); }) == "bad");
  CHECK_FALSE(ran);
}

TEST_CASE("graph: cancelled tasks do not run, and what needs them fails") {
  Engine engine({});
  const Variable x = engine.variable();
  Gate gate;
  const Task running = engine.push([&] { gate.pass(); }, {.name = "running"});
  bool ran = false;
  const Task first = engine.push([&] { ran = true; }, {.name = "first", .write = {x}});
  const Task second = engine.push([&] { ran = true; }, {.read = {x}});
  CHECK(engine.cancel(first));
  gate.open();
  CHECK(thrown_by([&] { engine.wait(second); }) == "engine: task 'first' was cancelled.");
  CHECK_FALSE(ran);
  engine.wait(running);
  CHECK_FALSE(engine.cancel(running));
  engine.wait_all();

  Gate again;
  engine.push([&] { again.pass(); }, {});
  for (int i = 0; i < 10; ++i) engine.push([&] { ran = true; }, {.write = {x}});
  const Task last = engine.push([&] { ran = true; }, {.name = "last"});
  engine.cancel_all("out of data");
  again.open();
  engine.wait_all();
  CHECK_FALSE(ran);
  CHECK(thrown_by([&] { engine.wait(last); }) == "engine: task 'last' was cancelled: out of data.");
}

TEST_CASE("graph: asynchronous tasks are complete when they are told so") {
  Engine engine({});
  const Variable x = engine.variable();
  std::mutex mutex;
  std::vector<Completion> held;
  const auto begin = [&](Completion completion) {
    const std::lock_guard lock(mutex);
    held.push_back(std::move(completion));
  };
  const auto started = [&] {
    const std::lock_guard lock(mutex);
    return held.size();
  };
  const Task first = engine.push_asynchronous(begin, {.write = {x}});
  const Task second = engine.push(nothing, {.read = {x}});
  while (started() < 1) std::this_thread::yield();
  CHECK_FALSE(engine.is_complete(first));
  held[0].done();
  held[0].failed(nullptr);   // has been ended already
  engine.wait(second);
  CHECK(engine.is_complete(first));

  const Task lost = engine.push_asynchronous([](Completion) {}, {.name = "lost"});
  CHECK(thrown_by([&] { engine.wait(lost); }).find("'lost' was given up") != std::string::npos);
  const Task thrower = engine.push_asynchronous(
      [](Completion) { throw std::runtime_error("at its start"); }, {});
  CHECK(thrown_by([&] { engine.wait(thrower); }) == "at its start");
}

TEST_CASE("graph: tasks of a sequence start in order, whatever becomes ready first") {
  Engine engine({.compute = 2, .communication = 2});
  const Variable x = engine.variable(), y = engine.variable();
  const Sequence calls = engine.sequence();
  Gate gate;
  std::string order;
  std::vector<Completion> held;
  const auto call = [&](char name) {
    return [&, name](Completion completion) {   // one at a time: the sequence sees to it
      order += name;
      held.push_back(std::move(completion));
    };
  };
  TaskSpec spec{.sequence = calls, .pool = Pool::communication};
  engine.push([&] { gate.pass(); }, {.write = {x}});
  spec.write = {x};
  engine.push_asynchronous(call('a'), spec);
  spec.write = {y};
  spec.priority = 7;   // ready at once, and urgent: a comes first all the same
  engine.push_asynchronous(call('b'), spec);
  gate.open();
  engine.wait(engine.push(nothing, {.sequence = calls}));   // the two have started, not ended
  CHECK(order == "ab");
  CHECK(engine.unfinished() == 2);
  for (const Completion& completion : held) completion.done();
  engine.wait_all();
}

TEST_CASE("graph: bad input is refused before anything is pushed") {
  Engine engine({}), other({});
  const auto starts = [](const std::string& text, const std::string& begin) {
    CHECK_MESSAGE(text.starts_with(begin), text);
  };
  starts(thrown_by([] { Engine none({.copy = 0}); }), "engine: 0 threads for the pool 'copy'");
  starts(thrown_by([&] { engine.push(nothing, {.read = {other.variable("v")}}); }),
         "engine: variable 'v' belongs to another engine");
  starts(thrown_by([&] { engine.push(nothing, {.write = {nullptr}}); }),
         "engine: a task names no variable");
  std::string inside;
  engine.wait(engine.push([&] { inside = thrown_by([&] { engine.wait_all(); }); }, {}));
  starts(inside, "engine: wait() inside of a task");
  inside.clear();   // this thread runs it
  engine.push([&] { inside = thrown_by([&] { engine.wait_all(); }); }, {.at_once = true});
  starts(inside, "engine: wait() inside of a task");
  CHECK(engine.unfinished() == 0);
  engine.close();
  starts(thrown_by([&] { engine.push(nothing, {}); }), "engine: it is closed");
}

TEST_CASE("graph: nothing is lost at the end, and what tasks keep is released") {
  std::atomic<int> ran{0};
  const auto kept = std::make_shared<int>(0);
  {
    Engine engine({.compute = 2});
    const Variable x = engine.variable();
    for (int i = 0; i < 200; ++i)
      engine.push([&] { ++ran; }, {.write = {x}, .keeps = kept});
  }
  CHECK(ran == 200);
  CHECK(kept.use_count() == 1);
}

// Every task notes how often its variables had been written when it ran; a run one after the other
// gives the same. Several threads push, run and wait.
TEST_CASE("graph: random programs see what a run in order would") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    const std::size_t variables = 1 + random.below(6), tasks = 1 + random.below(60);
    Engine engine({.compute = 1 + int(random.below(3))});
    std::vector<Variable> names;
    for (std::size_t v = 0; v < variables; ++v) names.push_back(engine.variable());
    std::vector<int> values(variables), serial(variables);
    std::vector<std::vector<int>> seen(tasks), expected(tasks);
    for (std::size_t t = 0; t < tasks; ++t) {
      TaskSpec spec{.priority = int(random.below(3))};
      std::vector<std::size_t> touched, written;
      for (std::size_t v = 0; v < variables; ++v) {
        if (random.below(3) != 0) continue;
        touched.push_back(v);
        const bool writes = random.below(2) == 0;
        (writes ? spec.write : spec.read).push_back(names[v]);
        if (writes) written.push_back(v);
      }
      spec.pool = static_cast<Pool>(random.below(kPools));
      engine.push([&, t, touched, written] {
        for (std::size_t v : touched) seen[t].push_back(values[v]);
        for (std::size_t v : written) ++values[v];
      }, spec);
      for (std::size_t v : touched) expected[t].push_back(serial[v]);
      for (std::size_t v : written) ++serial[v];
    }
    engine.wait_all();
    CHECK_MESSAGE(seen == expected, "seed ", seed);
  }
}
