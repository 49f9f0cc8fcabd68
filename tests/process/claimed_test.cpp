// Claimed algorithms (Algorithm::claimed, engine/claimed.hpp) over shared memory: a rank takes the
// next free position of the schedule as it enters the call. Ranks come in every order and at random
// times, calls follow each other while some ranks are far behind, and every result is right.
#include <doctest/doctest.h>

#include <bit>
#include <thread>

#include "base/random.hpp"
#include "bootstrap/join.hpp"
#include "process/ranks.hpp"
#include "runtime/fingerprint.hpp"
#include "world/cases.hpp"

namespace paceline {
namespace {

using test::Buffers;
using test::Case;
using test::expect_fault;
using test::run_ranks;

// With numbers=fast, as sums of floats in order of arrival need it.
WorldConfig fast_config(int rank, int ranks, int timeout_ms = 60000) {
  WorldConfig config;
  config.rank = rank;
  config.ranks = ranks;
  config.timeout_ms = timeout_ms;
  config.start_timeout_ms = 20000;
  config.progress = Progress::caller;
  config.shm_bytes = 4u << 20;
  config.numbers = Numbers::fast;
  return config;
}

Communicator join_fast(int rank, int ranks, const std::string& folder, int timeout_ms = 60000) {
  return join_world(std::make_shared<FileStore>(folder),
                    fast_config(rank, ranks, timeout_ms));
}

// All claimed algorithms of one node, at p ranks.
std::vector<Case> cases(int p) {
  std::vector<Case> out;
  int turn = 0;
  for (const Algorithm* a : registry()) {
    if (!a->claims()) continue;
    for (std::size_t n : {0, 1, p - 1, p + 1, 257, 5000})
      for (int root : std::set<int>{0, has_root(a->collective) ? p - 1 : 0})
        for (bool in_place : {false, true}) {
          Case c{a->collective, a->name, p, n, root, in_place};
          c.op = ++turn % 3 == 0 ? Op::max : turn % 3 == 1 ? Op::sum : Op::average;
          c.knobs.blocks = a->takes.blocks ? turn % 4 : 0;
          out.push_back(c);
        }
  }
  return out;
}

// Up to 300 us, half of the time none; each rank by random numbers of its own.
void delay(Random& random) {
  if (random.below(2) == 0) return;
  std::this_thread::sleep_for(std::chrono::microseconds(random.below(300)));
}

template <class T>
std::string run_one(Communicator& world, const Case& c, Random& random) {
  Buffers<T> buffers(c, world.rank());
  delay(random);
  world.run(buffers.call());
  return buffers.check();
}

TEST_CASE("claimed: results are right where ranks come at random times") {
  for (int p = 1; p <= 8; ++p) {
    if (p > 5 && p < 8) continue;
    const std::string bad = run_ranks(p, 120, [&](int rank, const std::string& folder) {
      Communicator world = join_fast(rank, p, folder);
      Random random(std::uint64_t(7 * p + rank));
      std::string wrong;
      int turn = 0;
      for (const Case& c : cases(p)) {
        wrong += turn % 3 == 0   ? run_one<float>(world, c, random)
                 : turn % 3 == 1 ? run_one<double>(world, c, random)
                                 : run_one<std::int32_t>(world, c, random);
        ++turn;
        // Calls that claim nothing: claims use two sides in turn, call by call (StageClaims).
        if (turn % 5 == 0)
          wrong += run_one<float>(world, {Collective::allreduce, "", p, 9}, random);
        if (!wrong.empty()) return wrong;
      }
      return wrong;
    });
    CHECK_MESSAGE(bad.empty(), p, " ranks: ", bad);
  }
}

// Empty if the call is refused with these words.
std::string refused(Communicator& world, Case c, int segments, int window, const char* why) {
  c.segments = segments, c.window = window;
  Buffers<float> buffers(c, world.rank());
  try {
    world.run(buffers.call());
  } catch (const Error& error) {
    if (std::string(error.what()).find(why) != std::string::npos) return {};
    return error.what();
  }
  return str(c.name(), " is not refused; ");
}

TEST_CASE("claimed: messages longer than the staging buffers go in segments") {
  const std::string bad = run_ranks(3, 120, [](int rank, const std::string& folder) {
    Communicator world = join_fast(rank, 3, folder);
    Random random(std::uint64_t(rank + 1));
    std::string wrong;
    for (const Algorithm* a : registry()) {
      if (!a->claims()) continue;
      Case c{a->collective, a->name, 3, 1 << 20};   // 4 MiB; all stages together have 8 MiB
      if (a->collective == Collective::reduce) {
        wrong += refused(world, c, 0, 0, "of every rank's stage, which has");
        wrong += refused(world, c, 5, 0, "its ranks leave early");
        continue;
      }
      wrong += run_one<float>(world, c, random);
      for (c.window = 1; c.window <= 2; ++c.window) {
        c.segments = 9;
        wrong += run_one<float>(world, c, random);
      }
    }
    return wrong;
  });
  CHECK_MESSAGE(bad.empty(), bad);
}

// In this reduce nobody waits but the root: the others may be one call ahead of it, and no more.
TEST_CASE("claimed: ranks that leave a reduce early begin the next call") {
  const std::string bad = run_ranks(4, 120, [](int rank, const std::string& folder) {
    Communicator world = join_fast(rank, 4, folder);
    for (int call = 0; call < 400; ++call) {
      Case c{Collective::reduce, "arrival_chain", 4, std::size_t(1 + call % 50), call % 4};
      Buffers<float> buffers(c, rank);
      if (call % 7 == rank) std::this_thread::sleep_for(std::chrono::microseconds(200));
      world.run(buffers.call());
      if (std::string wrong = buffers.check(); !wrong.empty()) return wrong;
    }
    return std::string();
  });
  CHECK_MESSAGE(bad.empty(), bad);
}

TEST_CASE("claimed: plans take positions anew each time they start") {
  const std::string bad = run_ranks(3, 60, [](int rank, const std::string& folder) {
    Communicator world = join_fast(rank, 3, folder);
    for (const char* name : {"arrival_chain", "arrival_leader", "dynamic_leader"}) {
      Buffers<float> buffers(Case{Collective::allreduce, name, 3, 100}, rank);
      Plan plan = world.plan(buffers.call());
      for (int turn = 0; turn < 20; ++turn) {
        if (turn % 3 == rank) std::this_thread::sleep_for(std::chrono::microseconds(100));
        plan.start().wait();
        if (std::string wrong = buffers.check(); !wrong.empty()) return wrong;
      }
    }
    return std::string();
  });
  CHECK_MESSAGE(bad.empty(), bad);
}

// Numbers whose sum depends on the order in which they are added.
std::vector<float> rough(int rank, std::size_t n) {
  std::vector<float> x(n);
  Random random(std::uint64_t(100 + rank));
  for (float& v : x) v = (float(random.below(2001)) - 1000.0f) * (rank % 2 ? 1e-4f : 1e3f);
  return x;
}

// What a world with numbers=stable says to each algorithm whose sums follow arrival.
std::string asked_in_stable(Communicator& world, const Algorithm& a) {
  for (const Op op : {Op::sum, Op::product, Op::average}) {
    Case c{a.collective, a.name, world.size(), 9};
    c.op = op;
    Buffers<float> floats(c, world.rank());
    const std::string bad =
        expect_fault(Fault::refusal, {a.name, "in which they come", "numbers is stable",
                                      "PACELINE_NUMBERS=fast", "or auto"},
                     [&] { world.run(floats.call()); });
    if (!bad.empty()) return bad;
  }
  Case c{a.collective, a.name, world.size(), 9};
  Buffers<std::int32_t> whole(c, world.rank());
  world.run(whole.call());
  if (std::string wrong = whole.check(); !wrong.empty()) return wrong;
  c.op = Op::max;
  Buffers<float> largest(c, world.rank());
  world.run(largest.call());
  return largest.check();
}

TEST_CASE("claimed: numbers=stable refuses float sums by arrival, and no exact ones") {
  const std::string bad = run_ranks(3, 60, [](int rank, const std::string& folder) {
    Communicator world = test::join(rank, 3, folder);
    int asked = 0;
    for (const Algorithm* a : registry()) {
      if (!a->claims()) continue;
      ++asked;
      if (std::string wrong = asked_in_stable(world, *a); !wrong.empty()) return wrong;
    }
    return std::string(asked == 4 ? "" : "hardly any was asked");
  });
  CHECK_MESSAGE(bad.empty(), bad);
}

TEST_CASE("claimed: ranks in different calls get a mismatch") {
  for (const bool claims : {true, false}) {
    const std::string bad = run_ranks(2, 60, [&](int rank, const std::string& folder) {
      Communicator world = join_fast(rank, 2, folder, 20000);
      const char* other = claims ? "arrival_chain" : "one_shot";
      Buffers<float> buffers(Case{Collective::allreduce, rank == 0 ? "arrival_chain" : other, 2,
                                  std::size_t(rank == 0 ? 10 : 11)}, rank);
      return expect_fault(Fault::mismatch, {"rank"}, [&] { world.run(buffers.call()); });
    });
    CHECK_MESSAGE(bad.empty(), bad);
  }
}

// Empty if explain() says the same on all ranks, and the sum has the same bits.
std::string agree(Communicator& world, const std::string& explained, float sum) {
  const std::uint64_t mine[2] = {tag_of(explained), std::bit_cast<std::uint32_t>(sum)};
  std::vector<std::uint64_t> all(2 * std::size_t(world.size()));
  Call call{.collective = Collective::allgather, .type = Type::u64};
  call.input = mine;
  call.output = all.data();
  call.count = 2;
  world.run(call);
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i] != mine[i % 2]) return str("another rank differs: ", i, "; here ", explained);
  return {};
}

// Real clocks decide whether it pays to go by arrival, in other ways each time: the test only looks
// whether all ranks decide the same, and have learned from arrivals at all.
TEST_CASE("claimed: ranks decide alike whether calls go by arrival, whoever is late") {
  const std::string bad = run_ranks(4, 120, [](int rank, const std::string& folder) {
    WorldConfig config = fast_config(rank, 4);
    config.arrival = "auto";
    Communicator world = join_world(std::make_shared<FileStore>(folder), config);
    Random random(std::uint64_t(rank + 1));
    std::vector<float> mine = rough(rank, 8192), sum(mine.size());
    Call call{.collective = Collective::allreduce, .type = Type::f32, .op = Op::sum};
    call.input = mine.data();
    call.output = sum.data();
    call.count = sum.size();
    Plan plan = world.plan(call);
    std::string explained;
    for (int turn = 0; turn < 400; ++turn) {
      if (turn / 100 == rank) std::this_thread::sleep_for(std::chrono::microseconds(600));
      else if (turn % 3 == 0) delay(random);
      explained = world.explain(call);
      if (random.below(2) == 0) world.run(call);
      else plan.start().wait();
      if (turn % 8 != 7) continue;
      if (std::string wrong = agree(world, explained, sum[std::size_t(turn)]); !wrong.empty())
        return wrong;
    }
    const bool has_learned = explained.find("arrivals in the node, of ") != std::string::npos;
    return has_learned ? std::string() : "nothing was learned: " + explained;
  });
  CHECK_MESSAGE(bad.empty(), bad);
}

TEST_CASE("claimed: a time-out names the ranks that have not come") {
  const std::string bad = run_ranks(3, 60, [](int rank, const std::string& folder) -> std::string {
    Communicator world = join_fast(rank, 3, folder);
    if (rank == 1) {
      for (const char* other : {"0", "2"}) test::await_note(folder, other);
      return {};
    }
    Buffers<float> buffers(Case{Collective::allreduce, "arrival_leader", 3, 10}, rank);
    Call call = buffers.call();
    call.timeout_ms = 300;
    const std::string bad = expect_fault(Fault::timeout, {"1"}, [&] { world.run(call); });
    test::note(folder, str(rank));
    return bad;
  });
  CHECK_MESSAGE(bad.empty(), bad);
}

}  // namespace
}  // namespace paceline
