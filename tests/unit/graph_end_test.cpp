// The end of the dependency engine, beside other threads and in forked children, and of errors that
// are no longer needed.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "graph/engine.hpp"

using namespace paceline;
using namespace paceline::graph;

namespace {

// An error whose destructor needs the engine, as one of Python needs a lock whose holder waits for
// the engine. Counts those destroyed while the engine could be used.
struct Entangled : std::runtime_error {
  Entangled(Engine& engine, std::atomic<int>& freed)
      : std::runtime_error("entangled"), held(&engine, [&freed](Engine* used) {
          auto seen = std::make_shared<std::promise<void>>();
          auto future = seen->get_future();
          std::thread([used, seen] {
            used->unfinished();
            seen->set_value();
          }).detach();
          if (future.wait_for(std::chrono::seconds(5)) == std::future_status::ready) ++freed;
        }) {}
  std::shared_ptr<Engine> held;
};

template <class Action>
bool fails(Action&& action) try {
  action();
  return false;
} catch (const std::exception&) {
  return true;
}

int ended_child(void (*body)(Engine&), Engine& engine) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);
    body(engine);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

}  // namespace

TEST_CASE("graph: errors of the past are freed without the engine's lock") {
  std::atomic<int> freed{0};
  Engine engine({});
  const auto fail_with = [&](const Variable& variable) {
    return engine.push([&] { throw Entangled(engine, freed); }, {.write = {variable}});
  };
  {
    const Variable x = engine.variable("x");
    for (int i = 0; i < 3; ++i) {   // each takes the place of the one before
      CHECK(fails([&] { engine.wait(fail_with(x)); }));
      engine.push([] {}, {.write = {x}});
    }
    for (int i = 0; i < 100; ++i) fail_with(engine.variable());   // no thread waits for these
    CHECK(fails([&] { engine.wait_all(); }));
    fail_with(x);
    CHECK(fails([&] { engine.wait(x); }));
  }
  engine.wait_all();
  engine.close();
  CHECK(freed == 104);
}

TEST_CASE("graph: threads that push while one closes are refused, and nothing is lost") {
  for (int round = 0; round < 50; ++round) {
    Engine engine({});
    std::atomic<int> ran{0}, pushed{0}, refused{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i)
      threads.emplace_back([&] {
        while (refused < 3) {
          if (fails([&] { engine.push([&] { ++ran; }, {}); }))
            ++refused;
          else
            ++pushed;
        }
      });
    while (pushed < 20) std::this_thread::yield();
    engine.close();
    for (std::thread& thread : threads) thread.join();
    CHECK(ran == pushed);
  }
}

TEST_CASE("graph: tasks may push tasks while the engine is being closed") {
  Engine engine({});
  std::atomic<int> ran{0};
  engine.push([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    engine.push([&] { ++ran; }, {});
  }, {});
  engine.close();
  CHECK(ran == 1);
}

TEST_CASE("graph: several threads close one engine, and each returns when it has ended") {
  for (int round = 0; round < 50; ++round) {
    Engine engine({});
    std::atomic<int> ran{0};
    for (int i = 0; i < 10; ++i) engine.push([&] { ++ran; }, {});
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) threads.emplace_back([&] { engine.close(); });
    for (std::thread& thread : threads) thread.join();
    CHECK(ran == 10);
    CHECK(engine.is_closed());
  }
}

TEST_CASE("graph: what ends a wait in close() leaves the engine open") {
  Engine engine({});
  std::atomic<bool> open{false};
  engine.push([&] {
    while (!open) std::this_thread::yield();
  }, {});
  CHECK(fails([&] { engine.close([] { throw std::runtime_error("Ctrl-C"); }); }));
  CHECK_FALSE(engine.is_closed());
  CHECK_FALSE(engine.settles(std::chrono::milliseconds(1)));
  open = true;
  CHECK(engine.settles(std::chrono::minutes(1)));
  engine.push([] {}, {});
  engine.close();
}

TEST_CASE("graph: a forked child can end, and is refused what it cannot have") {
  const auto engine = std::make_unique<Engine>(Threads{.compute = 2});
  std::atomic<bool> open{false};
  std::atomic<int> ran{0};
  const auto is_well = [](int status) { return WIFEXITED(status) && WEXITSTATUS(status) == 0; };
  for (const bool is_busy : {false, true}) {
    if (is_busy)
      engine->push([&] {
        while (!open) std::this_thread::yield();
        ++ran;
      }, {});
    CHECK(is_well(ended_child([](Engine& child) { child.close(); }, *engine)));
    CHECK(is_well(ended_child([](Engine& child) { child.~Engine(); }, *engine)));
    CHECK(is_well(ended_child([](Engine& child) {
      if (!fails([&] { child.push([] {}, {}); }) || !fails([&] { child.wait_all(); })) _exit(1);
      if (child.unfinished() != 0 || !child.settles(std::chrono::minutes(1))) _exit(2);
      child.cancel_all();
    }, *engine)));
  }
  open = true;
  engine->close();
  CHECK(ran == 1);
}
