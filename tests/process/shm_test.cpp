// The polled interpreter over shm: every rank is a process, forked here, that finds the others by a
// folder.
#include <doctest/doctest.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>

#include <cstdlib>
#include <set>
#include <thread>

#include "base/processors.hpp"
#include "bootstrap/join.hpp"
#include "process/own_memory.hpp"
#include "process/ranks.hpp"
#include "transport/shm/segment.hpp"
#include "transport/shm/shm.hpp"
#include "world/cases.hpp"

namespace paceline {
namespace {

using test::Buffers;
using test::Case;
using test::expect_fault;
using test::join;
using test::OwnMemory;
using test::run_ranks;
using test::shared_maps;

template <class T>
std::string run_once(Communicator& world, const Case& c, int rank) {
  Buffers<T> buffers(c, rank);
  world.run(buffers.call());
  return buffers.check();
}

// Without it every signal has a fence, which costs a third of a short call and breaks nothing else.
TEST_CASE("membarrier: every rank registers for it, where the system has it") {
  constexpr int kRegistrations = 1 << 9;   // MEMBARRIER_CMD_GET_REGISTRATIONS of Linux 6.3
  const long known = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
  if (known < 0 || (known & kRegistrations) == 0)
    return test::skip("this system does not say what is registered (Linux before 6.3)");
  const std::string bad = run_ranks(2, 20, [](int rank, const std::string& folder) -> std::string {
    const Communicator world = join(rank, 2, folder);
    const long mine = syscall(SYS_membarrier, kRegistrations, 0, 0);
    return mine & MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED ? "" : "not registered";
  });
  CHECK_MESSAGE(bad.empty(), bad);
}

// Ranks that must take turns on a processor yield; those that have one each must not.
TEST_CASE("ranks are oversubscribed where they outnumber the processors that they may run on") {
  const std::vector<int> all = allowed_processors();
  if (all.size() < 2) return test::skip("one processor alone");
  struct Row {
    const char* what;
    std::vector<std::vector<int>> allowed;   // by rank
    std::vector<bool> oversubscribed;
  };
  const std::vector<int> one{all[0]}, other{all[1]}, both{all[0], all[1]};
  const Row rows[] = {
      {"one each", {one, other}, {false, false}},
      {"the same one", {one, one}, {true, true}},
      {"both for both", {both, both}, {false, false}},
      {"both for three", {both, both, both}, {true, true, true}},
      {"one is bound, one is free", {one, both}, {false, false}},
      {"two are bound to one, one is free", {one, one, both}, {true, true, true}},
      {"two are bound to one, one to another", {one, one, other}, {true, true, false}},
  };
  for (const Row& row : rows) {
    const int p = static_cast<int>(row.allowed.size());
    const std::string bad =
        run_ranks(p, 20, [&](int rank, const std::string& folder) -> std::string {
          cpu_set_t set;
          CPU_ZERO(&set);
          for (int processor : row.allowed[std::size_t(rank)]) CPU_SET(processor, &set);
          if (sched_setaffinity(0, sizeof set, &set) != 0) return "cannot be bound";
          FileStore store(folder);
          StoreBootstrap meeting(store, "crowd", rank, p, std::chrono::seconds(10));
          const auto transport = make_shm(meeting, {});
          const bool oversubscribed = transport->is_oversubscribed();
          meeting.allgather("looked");
          return oversubscribed == row.oversubscribed[std::size_t(rank)] ? "" :
              str("rank ", rank, " is wrong");
        });
    CHECK_MESSAGE(bad.empty(), row.what, ": ", bad);
  }
}

// Joins in `memory`, calls on the world and on two more communicators, and leaves: rank 2 by being
// killed, if so. Empty, or what a rank that lives on still maps.
std::string gives_back(const OwnMemory& memory, int rank, const std::string& folder, bool killed) {
  WorldConfig config;
  config.rank = rank;
  config.ranks = 3;
  config.timeout_ms = config.start_timeout_ms = 20000;
  config.progress = Progress::caller;
  config.shm_bytes = 4u << 20;
  config.shm_dir = memory.path();
  {
    Communicator world = join_world(std::make_shared<FileStore>(folder), config);
    Communicator dup = world.dup(), part = world.split(0, -rank);
    const Case c{Collective::allreduce, "", 3, 10000};
    for (Communicator* comm : {&world, &dup, &part})
      if (std::string wrong = run_once<float>(*comm, c, comm->rank()); !wrong.empty()) return wrong;
    if (memory.taken() == 0 || shared_maps(memory.path()) == 0) return "they share nothing there";
    if (killed && rank == 2) raise(SIGKILL);
    if (killed)
      return expect_fault(Fault::lost, {"rank 2"}, [&] {
        while (true) world.run({.collective = Collective::barrier});
      });
    world.leave();
  }
  const int left = shared_maps(memory.path());
  return left == 0 ? std::string() : str("rank ", rank, " still maps ", left, " files");
}

TEST_CASE("every algorithm keeps its contract over shm") {
  for (int p : {1, 2, 3, 5, 8}) {
    const std::string bad =
        run_ranks(p, 100, [&](int rank, const std::string& folder) -> std::string {
          Communicator world = join(rank, p, folder);
          std::string first;
          int turn = 0;
          test::for_each_case(p, p > 3, [&](const Case& c) {
            if (!first.empty() || (test::is_attached(c) && !test::is_attached(world))) return;
            first = ++turn % 2 ? run_once<float>(world, c, rank) : run_once<double>(world, c, rank);
          });
          return first;
        });
    CHECK_MESSAGE(bad.empty(), "p = " << p << ": " << bad);
  }
}

TEST_CASE("long messages stream through small rings, several at once, with a progress thread") {
  const int p = 3;
  const std::string bad = run_ranks(p, 60, [&](int rank, const std::string& folder) -> std::string {
    Communicator world = join(rank, p, folder, 20000, Progress::thread);
    Communicator other = world.dup();
    std::vector<std::unique_ptr<Buffers<float>>> buffers;
    std::vector<Request> requests;
    for (int i = 0; i < 6; ++i) {
      const Case c{i % 3 == 2 ? Collective::alltoall : Collective::allreduce,
                   "",
                   p,
                   std::size_t(300000 + i),
                   0,
                   false,
                   false,
                   i,
                   2};
      buffers.push_back(std::make_unique<Buffers<float>>(c, rank));
      requests.push_back((i % 2 ? other : world).start(buffers.back()->call()));
    }
    for (std::size_t i = requests.size(); i-- > 0;) requests[i].wait();
    for (const auto& b : buffers)
      if (std::string wrong = b->check(); !wrong.empty()) return wrong;
    return {};
  });
  CHECK_MESSAGE(bad.empty(), bad);
}

TEST_CASE("split orders by key and separates colours") {
  const int p = 5;
  const std::string bad = run_ranks(p, 60, [&](int rank, const std::string& folder) -> std::string {
    Communicator world = join(rank, p, folder);
    Communicator part = world.split(rank % 2, -rank);
    const int members = rank % 2 ? 2 : 3;
    if (part.size() != members) return str("rank ", rank, ": ", part.size(), " members");
    if (part.rank() != members - 1 - rank / 2) return str("rank ", rank, " is at ", part.rank());
    Case c{Collective::allreduce, "ring", members, 100};
    if (std::string wrong = run_once<float>(part, c, part.rank()); !wrong.empty()) return wrong;
    Communicator none = world.split(rank == 0 ? -1 : 3, 0);
    return none.valid() == (rank != 0)
               ? std::string()
               : str("rank ", rank, ": a wrong split with a negative colour");
  });
  CHECK_MESSAGE(bad.empty(), bad);
}

// They send no data, but go by messages, and not through staging buffers.
TEST_CASE("a barrier and an empty allreduce by messages, as a communicator's first call") {
  const std::string bad = run_ranks(3, 30, [&](int rank, const std::string& folder) -> std::string {
    Communicator world = join(rank, 3, folder);
    Communicator first = world.dup(), second = world.dup();
    first.run({.collective = Collective::barrier, .algorithm = "dissemination"});
    return run_once<float>(second, {Collective::allreduce, "ring", 3, 0}, rank);
  });
  CHECK_MESSAGE(bad.empty(), bad);
}

TEST_CASE(
    "a call that differs between ranks is an error on all of them, at the latest at the next "
    "call") {
  struct Difference {
    std::vector<std::string> words;   // who has what
    std::function<void(Call&, int)> make;
  };
  const Difference differences[] = {
      {{"count differs between ranks (rank ", ": 100, rank 2: 101)"},
       [](Call& c, int r) { c.count = r == 2 ? 101 : 100; }},
      {{"count differs between ranks (rank ", ": 100, rank 2: 0)"},
       [](Call& c, int r) { c.count = r == 2 ? 0 : 100; }},
      {{"count differs between ranks (rank ", ": 100000, rank 2: 5000)"},
       [](Call& c, int r) { c.count = r == 2 ? 5000 : 100000; }},
      {{"count differs between ranks (rank 0: 200000, rank ", ": 199999)"},
       [](Call& c, int r) { c.count = r == 0 ? 200000 : 199999; }},
      {{"type differs between ranks (", "rank 1: int32", ": float32"},
       [](Call& c, int r) { c.type = r == 1 ? Type::i32 : Type::f32; }},
      {{"operation differs between ranks (", "rank 1: max", ": sum"},
       [](Call& c, int r) { c.op = r == 1 ? Op::max : Op::sum; }},
      {{"collective differs between ranks (rank 0: barrier, rank ", ": allreduce)"},
       [](Call& c, int r) { c.collective = r == 0 ? Collective::barrier : Collective::allreduce; }},
      {{"root differs between ranks (rank ", ": 0, rank 2: 2)"},
       [](Call& c, int r) {
         c.collective = Collective::broadcast;
         c.root = r == 2 ? 2 : 0;
       }},
      {{"root differs between ranks (rank ", ": 0, rank 2: 2)"},
       [](Call& c, int r) {
         c.collective = Collective::reduce;
         c.root = r == 2 ? 2 : 0;
       }},
      {{"the algorithm or its segments, window, radix or blocks", " differs between rank ",
        " and rank 2"},
       [](Call& c, int r) { c.algorithm = r == 2 ? "ring" : "binomial"; }},
  };
  for (const Difference& d : differences) {
    const std::string bad =
        run_ranks(3, 30, [&](int rank, const std::string& folder) -> std::string {
          Communicator world = join(rank, 3, folder, 8000);
          std::vector<float> in(200000), out(200000);
          Call call;
          call.collective = Collective::allreduce;
          call.type = Type::f32;
          call.count = 100;
          call.input = in.data();
          call.output = out.data();
          d.make(call, rank);
          return expect_fault(Fault::mismatch, d.words, [&] {
            for (int i = 0; i < 200;
                 ++i) {  // a rank that got through learns it at one of its next calls
              world.run(call);
              usleep(10000);
            }
          });
        });
    CHECK_MESSAGE(bad.empty(), d.words[0] << ": " << bad);
  }
}

TEST_CASE("a killed rank is named on every rank that waits") {
  const int p = 4;
  const std::string bad = run_ranks(p, 30, [&](int rank, const std::string& folder) -> std::string {
    Communicator world =
        join(rank, p, folder, 20000, rank % 2 ? Progress::thread : Progress::caller);
    std::vector<float> data(100000);
    Call call{.collective = Collective::allreduce,
              .type = Type::f32,
              .input = data.data(),
              .output = data.data(),
              .count = data.size()};
    world.run(call);
    if (rank == 2) raise(SIGKILL);
    std::string wrong = expect_fault(Fault::lost, {"rank 2", "died"}, [&] {
      while (true) world.run(call);
    });
    if (!wrong.empty()) return str("rank ", rank, ": ", wrong);
    return expect_fault(Fault::lost, {"rank 2"}, [&] { world.run(call); });
  }, {{2, SIGKILL}});
  CHECK_MESSAGE(bad.empty(), bad);
}

// Files that ranks share have no names: they show as pages that are taken, and as mappings.
TEST_CASE("shared memory is given back by ranks that leave, that are killed, and that go on") {
  const OwnMemory memory(64u << 20);
  if (!memory.is_there()) return;
  for (const bool killed : {false, true}) {
    const std::string bad = run_ranks(3, 30, [&](int rank, const std::string& folder) {
      return gives_back(memory, rank, folder, killed);
    }, killed ? test::Ends{{2, SIGKILL}} : test::Ends{});
    CHECK_MESSAGE(bad.empty(), bad);
    CHECK(memory.taken() == 0);
  }
}

// What the test above relies on: a leak shows although the files have no names.
TEST_CASE("OwnMemory and shared_maps see a file that is still open or mapped") {
  const OwnMemory memory(1u << 20);
  if (!memory.is_there()) return;
  CHECK((memory.taken() == 0 && shared_maps(memory.path()) == 0));
  {
    const SharedFile kept = SharedFile::create(memory.path(), 8192);
    CHECK((memory.taken() == 2 && shared_maps(memory.path()) == 1));
    const SharedFile besides = SharedFile::create_anonymous(8192);
    CHECK(shared_maps(memory.path()) == 2);
  }
  CHECK((memory.taken() == 0 && shared_maps(memory.path()) == 0));
}

TEST_CASE("a rank that does not come is named by the time-out, a rank that left by its leaving") {
  const std::string late =
      run_ranks(3, 30, [&](int rank, const std::string& folder) -> std::string {
        Communicator world = join(rank, 3, folder, rank == 1 ? 20000 : 700);
        std::vector<float> data(10);
        Call call{.collective = Collective::allreduce,
                  .type = Type::f32,
                  .input = data.data(),
                  .output = data.data(),
                  .count = 10};
        world.run(call);
        if (rank == 1) {
          sleep(2);
          return expect_fault(Fault::timeout, {"has waited", "rank 1"}, [&] { world.run(call); });
        }
        return expect_fault(Fault::timeout,
                            {"has waited 0.7 s", "rank 1 has last left allreduce #1"},
                            [&] { world.run(call); });
      });
  CHECK_MESSAGE(late.empty(), late);
  const std::string left =
      run_ranks(2, 30, [&](int rank, const std::string& folder) -> std::string {
        Communicator world = join(rank, 2, folder);
        Call call{.collective = Collective::barrier};
        world.run(call);
        if (rank == 1) return {};
        return expect_fault(Fault::lost, {"rank 1", "left"}, [&] { world.run(call); });
      });
  CHECK_MESSAGE(left.empty(), left);
}

TEST_CASE("a full memory file system is an error on every rank") {
  const std::string bad = run_ranks(2, 30, [&](int rank, const std::string& folder) -> std::string {
    const auto store = std::make_shared<FileStore>(folder);
    WorldConfig config;
    config.rank = rank;
    config.ranks = 2;
    config.start_timeout_ms = 5000;
    config.shm_bytes = std::size_t{1} << 30;
    if (rank == 0) config.shm_dir = folder + "/nowhere";
    return expect_fault(Fault::resource,
                        {"PACELINE_SHM_DIR", rank == 0 ? "rank 0 and rank 1" : "rank 1 and rank 0"},
                        [&] { join_world(store, config); });
  });
  CHECK_MESSAGE(bad.empty(), bad);
}

}  // namespace
}  // namespace paceline
