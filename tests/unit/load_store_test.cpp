// Preconditions of load/store operations are checked, and a stage shows each rank's call.
#include <doctest/doctest.h>

#include <functional>

#include "coll/registry.hpp"
#include "engine/shm/shm_channel.hpp"
#include "expect_fault.hpp"
#include "ir/fuse.hpp"
#include "ir/load_store.hpp"
#include "ir/pipeline.hpp"
#include "loop/loop.hpp"
#include "verify/hazards.hpp"
#include "verify/load_store.hpp"

using namespace paceline;

namespace {

using Author = std::function<void(Builder&, int rank)>;

std::string fault_of(int ranks, const Author& author, bool attached = false) {
  World world;
  for (int rank = 0; rank < ranks; ++rank) {
    Problem problem{.collective = Collective::broadcast, .ranks = ranks, .rank = rank};
    problem.one_node = true;
    Builder b(problem, 2);
    author(b, rank);
    world.push_back(in_order(std::move(b).take("by_hand")));
    world.back().single_copy = attached;
  }
  return check_straight(world).fault;
}

struct Ranks {
  static constexpr int kRanks = 3;
  LoopNet net{kRanks, {}};
  std::vector<std::unique_ptr<Transport>> transports;
  std::vector<ShmChannel> views;

  Ranks() {
    for (int rank = 0; rank < kRanks; ++rank) {
      transports.push_back(net.endpoint(rank));
      views.emplace_back(*transports.back()->stages(), 7, std::vector<int>{0, 1, 2}, rank);
      views.back().open();
    }
  }
  std::optional<int> enter(int rank, std::uint64_t call, std::size_t bytes, Fingerprint what = {}) {
    mismatch.reset();
    if (const auto peer = views[std::size_t(rank)].occupied(call, bytes, mismatch)) return peer;
    views[std::size_t(rank)].enter(call, bytes, static_cast<std::uint32_t>(call), what);
    views[std::size_t(rank)].signal(call, 1);
    views[std::size_t(rank)].enroll();
    return {};
  }
  std::optional<CallMismatch> mismatch;
};

}  // namespace

TEST_CASE("load/store: what its reading relies on is checked") {
  const auto signal_all = [](Builder& b, int rank) {
    for (int k = 1; k < 3; ++k) b.signal((rank + k) % 3);
  };
  const auto wait_all = [](Builder& b, int rank) {
    for (int k = 1; k < 3; ++k) b.wait((rank + k) % 3);
  };
  CHECK(fault_of(3, [&](Builder& b, int rank) {
          signal_all(b, rank);
          wait_all(b, rank);
        }).empty());
  CHECK(fault_of(2, [](Builder& b, int rank) {
          if (rank == 0) b.send(1, {b.output(0)});
          else b.recv(0, {b.output(0)});
        }) == "load/store: rank 0 sends a message");
  CHECK(fault_of(2, [](Builder& b, int rank) {
          const Segment slot = b.scratch(b.output(0, 1 + rank));
          b.copy(b.output(0, 1 + rank), slot);
        }) == "load/store: the slots of rank 1 are not as long as those of rank 0");
  CHECK(fault_of(3, [&](Builder& b, int rank) {
          b.signal((rank + 1) % 3);
          b.wait((rank + 2) % 3);
          b.signal((rank + 2) % 3);
          b.wait((rank + 1) % 3);
        }) == "load/store: rank 0 signals a peer, and not from its first signal on");
  CHECK(fault_of(3, [&](Builder& b, int rank) {   // fewer peers later on
          signal_all(b, rank);
          wait_all(b, rank);
          b.signal((rank + 1) % 3);
          b.wait((rank + 2) % 3);
        }).empty());
  CHECK(fault_of(2, [](Builder& b, int rank) {
          if (rank == 0) b.signal(1);
        }) == "load/store: rank 1 does not wait for the signals of rank 0 in their order");
}

TEST_CASE("load/store: who writes into a peer's scratch is in the call together with it") {
  const auto fault = [](bool before, bool after, bool reads) {
    World world;
    for (int rank = 0; rank < 2; ++rank) {
      Problem problem{.collective = Collective::broadcast, .ranks = 2, .rank = rank};
      problem.one_node = true;
      Builder b(problem, 1);
      const auto meet = [&] {
        b.signal(1 - rank);
        b.wait(1 - rank);
      };
      const Segment slot = b.scratch(b.output(0));
      if (before) meet();
      b.copy(b.output(0), b.of_peer(1 - rank, slot));
      if (after) meet();
      if (reads) b.copy(slot, b.output(0));
      world.push_back(std::move(b).take("by_hand"));
    }
    Partners partners;
    REQUIRE(match(world, partners));
    return check_hazards(world, partners).fault;
  };
  CHECK(fault(true, true, true).empty());
  CHECK(fault(false, true, true).find("which may not be there yet") != std::string::npos);
  CHECK(fault(true, false, false).find("which may have left") != std::string::npos);
  CHECK(!fault(true, false, true).empty());   // it may read before the peer has written
}

TEST_CASE("load/store: what is relied on where the system copies is checked") {
  const auto meet = [](Builder& b, int rank) {
    b.signal(1 - rank);
    b.wait(1 - rank);
  };
  CHECK(fault_of(2, [&](Builder& b, int rank) {
          meet(b, rank);
          b.copy(b.of_peer(1 - rank, b.output(rank)), b.output(rank));
        }, true).empty());
  const auto with_scratch = [&](Builder& b, int rank) {
    meet(b, rank);
    b.copy(b.output(0), b.scratch(b.output(0)));
  };
  CHECK(fault_of(2, with_scratch).empty());
  CHECK(fault_of(2, with_scratch, true) == "load/store: rank 0 wants scratch, and is attached");
  const auto peer_to_peer = [&](Builder& b, int rank) {
    meet(b, rank);
    b.copy(b.of_peer(1 - rank, b.output(0)), b.of_peer(1 - rank, b.output(1)));
  };
  CHECK(fault_of(2, peer_to_peer).empty());
  CHECK(fault_of(2, peer_to_peer, true).find("is no copy between rank 0 and a peer") !=
        std::string::npos);
  const auto before_signal = [](Builder& b, int rank) {
    if (rank == 0) {
      b.signal(1);
      return b.wait(1);
    }
    b.wait(0);
    b.copy(b.of_peer(0, b.output(0)), b.output(0));
    b.signal(0);
  };
  CHECK(fault_of(2, before_signal).empty());
  CHECK(fault_of(2, before_signal, true).find("comes before any signal of rank 1") !=
        std::string::npos);
}

TEST_CASE("stages: a rank may be one call ahead, and slots of neighbouring calls are apart") {
  Ranks r;
  for (std::uint64_t call = 1; call <= 2; ++call) {
    CHECK(!r.enter(0, call, 10000));
    r.views[0].leave(call);
  }
  CHECK(r.enter(0, 3, 10000) == 1);   // the others have not left the first call
  std::byte* before = nullptr;
  std::size_t bytes_before = 0;
  for (std::uint64_t call = 1; call <= 40; ++call) {
    const std::size_t bytes = call % 3 == 0 ? 24 : call % 3 == 1 ? 5000 : 20000;
    for (int rank = call <= 2 ? 1 : 0; rank < 3; ++rank) {
      REQUIRE(!r.enter(rank, call, bytes));
      std::byte* const slot = r.views[std::size_t(rank)].slot(1, call);
      if (rank == 1) {
        CHECK((slot + bytes <= before || before + bytes_before <= slot));
        before = slot;
        bytes_before = bytes;
      }
      r.views[std::size_t(rank)].leave(call);
    }
  }
  CHECK(r.enter(0, 41, StagingMemory::kBytes) == std::nullopt);   // beside a short slot
  r.views[0].leave(41);
  CHECK(r.enter(0, 42, StagingMemory::kBytes) == 1);              // but not beside itself
}

TEST_CASE("stages: who leaves a short call says so only when somebody waits for it") {
  Ranks r;
  const auto pass = [&](int rank, std::uint64_t call, std::size_t bytes) {
    const auto blocked = r.enter(rank, call, bytes);
    if (!blocked) r.views[std::size_t(rank)].leave(call);
    return blocked;
  };
  for (int rank = 0; rank < 3; ++rank) CHECK(!pass(rank, 1, 500));
  for (int rank = 0; rank < 2; ++rank) CHECK(!pass(rank, 2, 500));
  CHECK(pass(0, 3, 500) == 2);    // which seems to be in call 1 still
  CHECK(!r.enter(2, 2, 500));     // and has left it by this
  CHECK(!pass(0, 3, 500));
  r.views[2].leave(2);
  CHECK(!pass(1, 3, 500));
  CHECK(!pass(2, 3, 500));
  // Slots that overlap those of the call before: all wait for all to have left it.
  CHECK(pass(0, 4, StagingMemory::kBytes) == 1);
  CHECK(pass(1, 4, StagingMemory::kBytes) == 2);
  CHECK(!pass(2, 4, StagingMemory::kBytes));
  CHECK(!pass(1, 4, StagingMemory::kBytes));
  CHECK(!pass(0, 4, StagingMemory::kBytes));
  CHECK(pass(0, 5, StagingMemory::kBytes) == std::nullopt);   // long ones are left aloud
}

TEST_CASE("stages: ranks in different calls notice it, also if they did not wait for each other") {
  Ranks r;
  CHECK(!r.enter(0, 1, 8, {1, 100}));
  CHECK(!r.enter(1, 1, 8, {1, 101}));
  CHECK(!r.enter(2, 1, 8, {1, 100}));
  REQUIRE(r.views[0].has_come(1, 1, 1));
  const auto met = r.views[0].mismatch(1, 1);
  REQUIRE(met);
  CHECK(met->theirs.fingerprint.count == 101);
  CHECK(r.views[0].has_come(2, 1, 1));
  CHECK(!r.views[0].mismatch(2, 1));
  for (ShmChannel& view : r.views) view.leave(1);
  for (int rank = 0; rank < 3; ++rank) CHECK(!r.enter(rank, 2, 8, {5, 5}));
  REQUIRE(r.views[2].has_come(1, 2, 1));
  const auto earlier = r.views[2].mismatch(1, 2);   // the digest tells, and names the call
  REQUIRE(earlier);
  CHECK(earlier->mine.fingerprint.count == 100);
  for (ShmChannel& view : r.views) view.leave(2);
  CHECK(!r.views[0].is_called());
  CHECK(!r.enter(2, 3, 8));
  CHECK(r.views[0].is_called());
}

TEST_CASE("stages: who is about to say which call this is shows none until it is whole") {
  Ranks r;
  for (std::uint64_t call = 1; call <= 2; ++call) {
    for (int rank = 0; rank < 3; ++rank) REQUIRE(!r.enter(rank, call, 8, {call, 5}));
    for (ShmChannel& view : r.views) view.leave(call);
  }
  REQUIRE(!r.enter(0, 3, 8, {3, 5}));
  const StagingBuffer peer = r.transports[0]->stages()->find(1, 7).value();
  peer.line(3).turn.store(3 << 16);   // what it said in the first call is still there
  CHECK(!r.views[0].find_mismatch(3));
  r.views[1].enter(3, 8, 3, {4, 5});
  r.views[1].announce(3);
  const auto found = r.views[0].find_mismatch(3);
  REQUIRE(found);
  CHECK(found->theirs.number() == 3);
  CHECK(found->theirs.fingerprint.what == 4);
}

TEST_CASE("load/store: segments give no more signals than one of them times their number") {
  for (const Algorithm* a : registry())
    for (int p : {2, 3, 8})
      for (int rank = 0; a->is_load_store() && rank < p; ++rank)
        for (int blocks : {0, 5, 40}) {
          Problem problem{.collective = a->collective, .ranks = p, .rank = rank};
          problem.one_node = problem.symmetric = problem.single_copy = problem.fast = true;
          if (a->rejects(problem) || (blocks > 0 && !a->takes.blocks)) continue;
          const Schedule one = build(*a, problem, {.blocks = blocks});
          const std::size_t signals = signals_in(one);
          CAPTURE(a->name);
          CHECK(signals < 64 * std::size_t(std::max(blocks, 1)));
          if (a->uses(Access::staging)) continue;
          for (int window : {1, 6})
            CHECK(signals_in(in_order(pipeline(fuse(one), 7, window))) <= 7 * signals);
        }
}
