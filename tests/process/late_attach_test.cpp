// A rank that leaves while peers have yet to attach its staging buffers of communicators that were
// made after the start, and so cannot read what it has sent there.
#include <doctest/doctest.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "bootstrap/join.hpp"
#include "process/ranks.hpp"
#include "runtime/progress/clock.hpp"

namespace paceline {
namespace {

using test::expect_fault;
using test::run_ranks;

constexpr int kRanks = 3, kAttachersMs = 300;

Communicator join(int rank, const std::string& folder, int attachers_ms) {
  WorldConfig config;
  config.rank = rank;
  config.ranks = kRanks;
  config.timeout_ms = 20000;
  config.start_timeout_ms = 20000;
  config.progress = Progress::caller;
  config.shm_bytes = 4u << 20;
  config.attachers_ms = attachers_ms;
  return join_world(std::make_shared<FileStore>(folder), config);
}

// Of `value` from rank 0 of the world, which is `root` in this communicator; returns what came.
float broadcast(Communicator& comm, int root, float value) {
  std::vector<float> data(100, value);
  comm.run({.collective = Collective::broadcast,
            .type = Type::f32,
            .root = root,
            .input = data.data(),
            .output = data.data(),
            .count = data.size()});
  return data[99];
}

void barrier(Communicator& comm) { comm.run({.collective = Collective::barrier}); }

void sleep_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

// Empty if world.leave() returns long before the time-out of a call.
std::string leaves_soon(Communicator& world) {
  const double begun_s = now_s();
  world.leave();
  const double took_s = now_s() - begun_s;
  return took_s < 10 ? "" : str("to leave took ", took_s, " s");
}

struct Maker {
  const char* name;
  int root;   // rank 0 of the world in what is made
  Communicator (*make)(Communicator& world);
};

const Maker kMakers[] = {
    {"dup", 0, [](Communicator& world) { return world.dup(); }},
    {"split", kRanks - 1, [](Communicator& world) { return world.split(0, -world.rank()); }},
    {"subgroup", 1, [](Communicator& world) { return world.subgroup({2, 0, 1}, 9); }}};

// A peer that computes is waited for as long as a call is, and not for attachers_ms alone.
TEST_CASE("leave: right after a first call it waits for peers that make that call later") {
  for (const Maker& maker : kMakers) {
    const auto body = [&](int rank, const std::string& folder) -> std::string {
      Communicator world = join(rank, folder, kAttachersMs), later = maker.make(world);
      sleep_ms((kAttachersMs + 100) * rank);
      const float found = broadcast(later, maker.root, rank == 0 ? 3.5f : 0.0f);
      world.leave();
      return found == 3.5f ? "" : str("rank ", rank, " has ", found);
    };
    const std::string bad = run_ranks(kRanks, 30, body);
    CHECK_MESSAGE(bad.empty(), std::string(maker.name) << ": " << bad);
  }
}

// It counts how long a peer is in a call, and not how long it has waited before the peer came.
TEST_CASE("leave: waits for a peer that makes another call late, and then makes this one") {
  constexpr int attachers_ms = 1000;
  const std::string bad =
      run_ranks(kRanks, 30, [](int rank, const std::string& folder) -> std::string {
        Communicator world = join(rank, folder, attachers_ms);
        float found = 3.5f;
        if (rank != 0) {
          Communicator others = world.subgroup({1, 2}, 6);
          sleep_ms(rank == 1 ? attachers_ms + 300 : attachers_ms + 200);
          barrier(others);
        }
        if (rank != 1) {
          Communicator part = world.subgroup({0, 2}, 5);
          found = broadcast(part, 0, rank == 0 ? 3.5f : 0.0f);
        }
        world.leave();
        return found == 3.5f ? "" : str("rank ", rank, " has ", found);
      });
  CHECK_MESSAGE(bad.empty(), bad);
}

// They attach while they wait, and hear at once that it has left.
TEST_CASE("leave: peers that wait for this rank in another call do not hold it up") {
  const std::string bad =
      run_ranks(kRanks, 30, [](int rank, const std::string& folder) -> std::string {
        Communicator world = join(rank, folder, 25000), later = world.dup();
        if (rank == 0) {
          broadcast(later, 0, 3.5f);
          world.leave();
          return {};
        }
        std::string wrong = expect_fault(Fault::lost, {"rank 0 is lost", "left"},
                                         [&] { barrier(world); });
        if (wrong.empty() && broadcast(later, 0, 0) != 3.5f) wrong = "what it had sent is lost";
        return wrong;
      });
  CHECK_MESSAGE(bad.empty(), bad);
}

// They cannot attach, and may wait for the very rank that leaves.
TEST_CASE("leave: gives up after attachers_ms on peers that wait without the communicator") {
  const std::string bad =
      run_ranks(kRanks, 30, [](int rank, const std::string& folder) -> std::string {
        Communicator world = join(rank, folder, kAttachersMs);
        if (rank == 0) {
          Communicator part = world.subgroup({0, 1}, 5);
          broadcast(part, 0, 3.5f);
          return leaves_soon(world);
        }
        return expect_fault(Fault::lost, {"rank 0 is lost", "left"}, [&] { barrier(world); });
      });
  CHECK_MESSAGE(bad.empty(), bad);
}

TEST_CASE("leave: does not wait for peers that have left or died") {
  const std::string bad =
      run_ranks(kRanks, 30, [](int rank, const std::string& folder) -> std::string {
        Communicator world = join(rank, folder, 25000);
        if (rank == 1) return {};
        if (rank == 2) raise(SIGKILL);
        Communicator part = world.subgroup({0, 1, 2}, 5);
        broadcast(part, 0, 3.5f);
        return leaves_soon(world);
      }, {{2, SIGKILL}});
  CHECK_MESSAGE(bad.empty(), bad);
}

// Not even as root, whom else nobody keeps out.
void give_up_privileges() {
  __user_cap_header_struct version{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2]{};
  syscall(SYS_capset, &version, none);
}

// Whatever is made later has memory that some cannot open of others.
TEST_CASE("attach: a rank that cannot be looked at any more is told at once, on all ranks") {
  const bool may_change = geteuid() == 0;
  for (const bool changes_user : {false, true}) {
    if (changes_user && !may_change) continue;
    const std::string bad = run_ranks(
        kRanks, 30, [&](int rank, const std::string& folder) -> std::string {
          if (!changes_user) give_up_privileges();
          Communicator world = join(rank, folder, kAttachersMs);
          barrier(world);
          if (rank == 1 && changes_user && setuid(65534) != 0) return "no other user";
          if (rank == 1 && !changes_user) prctl(PR_SET_DUMPABLE, 0);
          barrier(world);
          std::vector<Communicator> made;
          return expect_fault(   // a time-out is another fault
              Fault::resource, {"cannot be opened", "changed its user", "setuid"}, [&] {
                for (int i = 0; i < 100; ++i) {   // until the room that ranks have shown is full
                  made.push_back(world.dup());
                  barrier(made.back());   // which a rank that reaches all others may end
                  barrier(made.back());
                }
              });
        });
    CHECK_MESSAGE(bad.empty(), changes_user << ": " << bad);
  }
}

}  // namespace
}  // namespace paceline
