// Ranks that die while the others start, make communicators and shared memory, or leave.
#include <doctest/doctest.h>
#include <chrono>
#include <thread>

#include "bootstrap/join.hpp"
#include "process/answer_call.hpp"
#include "process/ranks.hpp"
#include "runtime/progress/clock.hpp"
#include "skip.hpp"

namespace paceline {
namespace {

using test::expect_fault;

constexpr int kRanks = 3, kDies = 2;
constexpr double kMostS = 10;

[[noreturn]] void die() {
  raise(SIGKILL);
  _exit(1);
}

void give_others_time() { std::this_thread::sleep_for(std::chrono::milliseconds(200)); }

// Ends its process instead of saying something, or of hearing it, for the nth time. The others have
// read what it said before.
class DeadlyStore : public Store {
 public:
  DeadlyStore(const std::string& folder, int sets, int gets)
      : below_(folder), sets_(sets), gets_(gets) {}
  void set(const std::string& key, const std::string& value) override {
    if (sets_-- == 0) end();
    below_.set(key, value);
  }
  std::string get(const std::string& key, std::chrono::milliseconds timeout) override {
    if (gets_ == 0) end();
    const std::string value = below_.get(key, timeout);
    --gets_;
    return value;
  }

 private:
  static void end() {
    give_others_time();
    die();
  }

  FileStore below_;
  int sets_, gets_;
};

WorldConfig config_of(int rank, const char* node) {
  WorldConfig config;
  config.rank = rank;
  config.ranks = kRanks;
  config.timeout_ms = 60000;
  config.start_timeout_ms = 60000;
  config.progress = Progress::caller;
  config.shm_bytes = 4u << 20;
  config.node = node;
  return config;
}

// What each other rank raises when the last one dies, and how soon.
std::string meet(const std::function<void(int rank, const std::string& folder)>& body) {
  return test::run_ranks(kRanks, 90, [&](int rank, const std::string& folder) -> std::string {
    const double begun_s = now_s();
    const std::string bad = expect_fault(Fault::lost, {"rank 2 is lost", "process has died"},
                                         [&] { body(rank, folder); });
    if (!bad.empty()) return str("rank ", rank, ": ", bad);
    const double took_s = now_s() - begun_s;
    return took_s < kMostS ? "" : str("rank ", rank, " has waited ", took_s, " s");
  }, {{kDies, SIGKILL}});
}

void join_until(int rank, const std::string& folder, int sets, int gets) {
  std::shared_ptr<Store> store;
  if (rank == kDies) store = std::make_shared<DeadlyStore>(folder, sets, gets);
  else store = std::make_shared<FileStore>(folder);
  const Communicator world = join_world(store, config_of(rank, ""));
  std::this_thread::sleep_for(std::chrono::seconds(1));
}

TEST_CASE("a rank that dies while ranks start is named, whatever it has said before") {
  constexpr int kTurns = 5, kNever = 1 << 20;
  for (int said = 1; said < kTurns; ++said) {   // from where its process is known on
    const std::string bad = meet([&](int rank, const std::string& folder) {
      join_until(rank, folder, said, kNever);
    });
    CHECK_MESSAGE(bad.empty(), "after saying " << said << " things: " << bad);
  }
  // It hears of two others a turn; after the last it would show its stage.
  const std::string bad = meet([&](int rank, const std::string& folder) {
    join_until(rank, folder, kNever, 2 * kTurns - 1);
  });
  CHECK_MESSAGE(bad.empty(), "before it shows its stage: " << bad);
}

constexpr const char* kNoFilter = "the system filters no calls";

// As Linux before 5.3, and some containers, have it.
void forbid_descriptors_of_processes() {
  if (!test::answer_call(SYS_pidfd_open, test::kMissing))
    fail(Fault::internal, kNoFilter);
}

TEST_CASE("a rank that dies is named where the system has no descriptors of processes") {
  for (const bool as_they_start : {true, false}) {
    const std::string bad = meet([&](int rank, const std::string& folder) {
      forbid_descriptors_of_processes();
      if (as_they_start) return join_until(rank, folder, 3, 1 << 20);
      Communicator world = test::join(rank, kRanks, folder, 60000);
      if (rank == kDies) give_others_time(), die();
      world.run({.collective = Collective::barrier});
    });
    if (bad.find(kNoFilter) != bad.npos) return test::skip(kNoFilter);
    CHECK_MESSAGE(bad.empty(), std::string(as_they_start ? "as they start: " : "in a call: "), bad);
  }
}

struct Maker {
  const char* name;
  void (*make)(Communicator& world);
};

const Maker kMakers[] = {{"dup", [](Communicator& world) { (void)world.dup(); }},
                         {"split", [](Communicator& world) { (void)world.split(0, 1); }},
                         {"allocate", [](Communicator& world) { (void)world.allocate(4096); }}};

TEST_CASE("a rank that dies is named by those that make communicators or memory") {
  for (const Maker& maker : kMakers)
    for (const Progress progress : {Progress::caller, Progress::thread}) {
      const std::string bad = meet([&](int rank, const std::string& folder) {
        Communicator world = test::join(rank, kRanks, folder, 60000, progress);
        if (rank == kDies) give_others_time(), die();
        maker.make(world);
      });
      CHECK_MESSAGE(bad.empty(), std::string(maker.name) << ": " << bad);
    }
}

TEST_CASE("a rank that dies in the middle of allocate() is named") {
  const std::string bad = meet([&](int rank, const std::string& folder) {
    Communicator world = test::join(rank, kRanks, folder, 60000);
    if (rank != kDies) return (void)world.allocate(4096);
    char card[64] = {}, all[kRanks * 64];   // as the first of the calls that this makes
    Call call;
    call.collective = Collective::allgather;
    call.input = card;
    call.output = all;
    call.count = sizeof(card);
    world.run(call);
    die();
  });
  CHECK_MESSAGE(bad.empty(), bad);
}

TEST_CASE("leave: does not wait for a rank that dies meanwhile") {
  const std::string bad =
      test::run_ranks(kRanks, 60, [](int rank, const std::string& folder) -> std::string {
        Communicator world = test::join(rank, kRanks, folder, 60000);
        Communicator later = world.dup();
        float value = 1;
        Call call;
        call.collective = Collective::broadcast;
        call.type = Type::f32;
        call.input = call.output = &value;
        call.count = 1;
        if (rank == kDies) give_others_time(), die();
        if (rank == 0) later.run(call);   // the others have yet to find what it shows
        if (rank == 1) std::this_thread::sleep_for(std::chrono::seconds(1)), later.run(call);
        const double begun_s = now_s();
        world.leave();
        const double took_s = now_s() - begun_s;
        return took_s < kMostS ? "" : str("to leave took rank ", rank, " ", took_s, " s");
      }, {{kDies, SIGKILL}});
  CHECK_MESSAGE(bad.empty(), bad);
}

}  // namespace
}  // namespace paceline
