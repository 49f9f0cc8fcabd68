// Collectives as tasks: random programs whose operands become ready in a different order on each
// rank, over several communicators, with tasks that fail. Nothing deadlocks, and no sum is wrong.
#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "base/random.hpp"
#include "bootstrap/open_world.hpp"
#include "loop/loop.hpp"
#include "tasks/collective.hpp"
#include "world/worlds.hpp"

using namespace paceline;
using namespace paceline::graph;

namespace {

using Array = std::vector<std::uint64_t>;

constexpr int kTimeoutMs = 20000;

struct Step {
  int target = 0, source = 0;       // variables
  int communicator = -1;            // -1: a task of this rank alone
  bool broadcasts = false;          // else it sums
  int root = 0;
  int priority = 0;
};

// One program for all ranks; `fails` is the step in which rank `bad` throws.
struct Program {
  int ranks = 2, variables = 1, communicators = 1;
  std::size_t count = 1;
  std::vector<Step> steps;
  int fails = -1, bad = 0;

  explicit Program(std::uint64_t seed, bool may_fail) {
    Random random(seed);
    const auto below = [&](int limit) { return int(random.below(std::size_t(limit))); };
    ranks = 2 + below(7);
    variables = 1 + below(6);
    communicators = 1 + below(3);
    count = 1 + random.below(40);
    steps.resize(std::size_t(2 + below(25)));
    for (Step& step : steps) {
      step = {below(variables), below(variables), below(2) == 0 ? -1 : below(communicators),
              below(4) == 0, below(ranks), below(3)};
    }
    if (!may_fail) return;
    fails = below(int(steps.size()));
    bad = below(ranks);
    steps[std::size_t(fails)].communicator = -1;
  }

  std::uint64_t first_value(int rank, int variable, std::size_t i) const {
    return std::uint64_t(rank) * 1000003 + std::uint64_t(variable) * 1009 + i + 1;
  }
};

void compute(std::size_t number, Array& target, const Array& source) {
  for (std::size_t i = 0; i < target.size(); ++i)
    target[i] = 3 * target[i] + 5 * source[i] + number;
}

// Returns the final contents of every rank's variables: [rank][variable].
std::vector<std::vector<Array>> run_in_order(const Program& program) {
  std::vector<std::vector<Array>> all(std::size_t(program.ranks));
  for (int r = 0; r < program.ranks; ++r)
    for (int v = 0; v < program.variables; ++v) {
      all[std::size_t(r)].emplace_back(program.count);
      for (std::size_t i = 0; i < program.count; ++i)
        all[std::size_t(r)].back()[i] = program.first_value(r, v, i);
    }
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    const Step& step = program.steps[s];
    const auto target = std::size_t(step.target);
    if (step.communicator < 0) {
      for (auto& own : all) compute(s, own[target], own[std::size_t(step.source)]);
      continue;
    }
    Array result = all[std::size_t(step.root)][target];
    if (!step.broadcasts) {
      result.assign(program.count, 0);
      for (const auto& own : all)
        for (std::size_t i = 0; i < program.count; ++i) result[i] += own[target][i];
    }
    for (auto& own : all) own[target] = result;
  }
  return all;
}

Call call_of(const Step& step, Array& array) {
  Call call;
  call.collective = step.broadcasts ? Collective::broadcast : Collective::allreduce;
  call.type = Type::u64;
  call.root = step.root;
  call.input = step.broadcasts ? nullptr : array.data();
  call.output = array.data();
  call.count = array.size();
  return call;
}

// The naive way, which the test must reject: makes each call as soon as its operands are ready.
Task push_naively(Engine& engine, Communicator communicator, const Call& call, TaskSpec spec) {
  spec.pool = Pool::communication;
  return engine.push_asynchronous(
      [communicator, call](Completion completion) mutable {
        Request request = communicator.start(call);
        request.on_complete([completion, request](bool ok) mutable {
          if (ok) completion.done();
          else completion.ends_with([request]() mutable { request.wait(); });
        });
      },
      std::move(spec));
}

struct Outcome {
  std::string wrong;      // a wrong value, or an unexpected error
  bool timed_out = false;
  bool failed = false;
};

// One rank: its arrays, its engine, and the communicators that it calls on.
class Rank {
 public:
  Rank(const Program& program, std::uint64_t seed, Communicator world, bool naive)
      : program_(program), rank_(world.rank()), naive_(naive),
        random_(seed ^ Random::mix(std::uint64_t(rank_) + 1)) {
    for (int v = 0; v < program.variables; ++v) {
      arrays_.emplace_back(program.count);
      for (std::size_t i = 0; i < program.count; ++i)
        arrays_.back()[i] = program.first_value(rank_, v, i);
      variables_.push_back(engine_.variable(str("v", v)));
    }
    for (int c = 0; c < program.communicators; ++c) {
      communicators_.push_back(world.dup());
      calls_.emplace_back(engine_, communicators_.back());
    }
  }

  Outcome run(const std::vector<Array>& expected) {
    for (std::size_t s = 0; s < program_.steps.size(); ++s) push(s);
    Outcome outcome;
    for (std::size_t v = 0; v < variables_.size(); ++v) {
      try {
        engine_.wait(variables_[v]);
        if (arrays_[v] != expected[v])
          outcome.wrong += str("rank ", rank_, ": variable ", v, " is wrong; ");
      } catch (const std::exception& error) {
        outcome.failed = true;
        const auto* ours = dynamic_cast<const Error*>(&error);
        outcome.timed_out |= ours && ours->fault() == Fault::timeout;
        if (program_.fails < 0) outcome.wrong += str("rank ", rank_, ": ", error.what(), "; ");
      }
    }
    try {
      engine_.close();
    } catch (const std::exception&) {   // of a variable that was written again later
      outcome.failed = true;
    }
    return outcome;
  }

 private:
  void push(std::size_t s) {
    const Step& step = program_.steps[s];
    const Variable& target = variables_[std::size_t(step.target)];
    Array& array = arrays_[std::size_t(step.target)];
    if (step.communicator >= 0) {
      TaskSpec spec{.name = str("step ", s), .write = {target}, .priority = step.priority};
      const auto at = std::size_t(step.communicator);
      if (naive_) push_naively(engine_, communicators_[at], call_of(step, array), std::move(spec));
      else calls_[at].push(call_of(step, array), std::move(spec));
      return;
    }
    const Array& source = arrays_[std::size_t(step.source)];
    const auto delay = std::chrono::microseconds(random_.below(4) == 0 ? random_.below(400) : 0);
    const bool throws = int(s) == program_.fails && rank_ == program_.bad;
    engine_.push(
        [&array, &source, s, delay, throws] {
          if (delay.count() > 0) std::this_thread::sleep_for(delay);
          if (throws) throw std::runtime_error("thrown by the program");
          compute(s, array, source);
        },
        {.read = {variables_[std::size_t(step.source)]}, .write = {target},
         .priority = int(random_.below(3))});
  }

  const Program& program_;
  int rank_;
  bool naive_;
  Random random_;
  std::vector<Array> arrays_;
  std::vector<Communicator> communicators_;
  Engine engine_{{.compute = 2, .communication = 2}};   // ends before what its tasks work on
  std::vector<tasks::Calls> calls_;
  std::vector<Variable> variables_;
};

Outcome run(const Program& program, std::uint64_t seed, bool naive = false,
            int timeout_ms = kTimeoutMs) {
  const auto expected = run_in_order(program);
  LoopNet net(program.ranks, {});
  std::vector<Outcome> outcomes(std::size_t(program.ranks));
  std::vector<std::thread> ranks;
  for (int r = 0; r < program.ranks; ++r)
    ranks.emplace_back([&, r] {
      WorldConfig config;
      config.progress = Progress::thread;
      config.timeout_ms = timeout_ms;
      Outcome& mine = outcomes[std::size_t(r)];
      try {
        Rank rank(program, seed, join_transport(net.endpoint(r), config), naive);
        mine = rank.run(expected[std::size_t(r)]);
      } catch (const std::exception& error) {
        mine.wrong = str("rank ", r, ": ", error.what());
      }
    });
  for (std::thread& rank : ranks) rank.join();
  Outcome all;
  for (const Outcome& one : outcomes) {
    all.wrong += one.wrong;
    all.timed_out |= one.timed_out;
    all.failed |= one.failed;
  }
  return all;
}

}  // namespace

TEST_CASE("graph calls: operands become ready in any order, and every result is right") {
  for (std::uint64_t seed = 1, last = test::by_length(15u, 50u, 5000u); seed <= last; ++seed) {
    const Outcome outcome = run(Program(seed, false), seed);
    CHECK_MESSAGE(outcome.wrong.empty(), "seed ", seed, ": ", outcome.wrong);
  }
}

TEST_CASE("graph calls: a task that fails on one rank leaves nobody waiting") {
  int failed = 0;
  for (std::uint64_t seed = 1, last = test::by_length(15u, 50u, 5000u); seed <= last; ++seed) {
    const Outcome outcome = run(Program(seed, true), seed);
    CHECK_MESSAGE(outcome.wrong.empty(), "seed ", seed, ": ", outcome.wrong);
    CHECK_MESSAGE(!outcome.timed_out, "seed ", seed, ": a rank waited for one that never came");
    failed += outcome.failed ? 1 : 0;
  }
  CHECK(failed > 0);
}

TEST_CASE("graph calls: calls made as their operands become ready go wrong") {
  int wrong = 0;
  for (std::uint64_t seed = 1; seed <= 40 && wrong == 0; ++seed)
    wrong += run(Program(seed, false), seed, true, 1000).wrong.empty() ? 0 : 1;
  CHECK(wrong > 0);
}

// The thread that completes a call may be the last to hold the session, and look at peers again.
TEST_CASE("graph calls: a session outlives the net that it was made with") {
  auto net = std::make_unique<LoopNet>(2, LoopOptions{});
  WorldConfig config;
  config.progress = Progress::caller;
  std::vector<Communicator> ranks;
  for (int r = 0; r < 2; ++r) ranks.push_back(join_transport(net->endpoint(r), config));
  net.reset();
  std::vector<float> x{1, 2}, y{3, 4};
  Call call{.collective = Collective::allreduce, .count = 2};
  call.type = Type::f32;
  call.op = Op::sum;
  call.input = call.output = x.data();
  Request first = ranks[0].start(call);
  call.input = call.output = y.data();
  Request second = ranks[1].start(call);
  for (bool done = false; !done;) {
    done = first.test();
    done = second.test() && done;
  }
  CHECK(x == std::vector<float>{4, 6});
  CHECK(y == x);
}
