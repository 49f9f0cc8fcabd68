// What a rank believes of the cells that a peer writes into its ring, and the numbers that long
// messages go by there.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>

#include "transport/bootstrap.hpp"
#include "transport/shm/peer.hpp"
#include "transport/shm/shm.hpp"

namespace paceline {
namespace {

struct Notes : Listener {
  int misfitting = 0;
  std::size_t came = 0, expected = 0;
  bool arrives(int, const Key&, const Fingerprint&) override { return true; }
  void misfits(int, const Key&, std::size_t c, std::size_t e) override {
    ++misfitting;
    came = c;
    expected = e;
  }
  void aborted(int, std::uint64_t, const std::string&) override {}
  void lost(int, const std::string&) override {}
};

struct Seen {
  Notes notes;
  bool done = false;
};

constexpr std::uint64_t kTotal = 256;

// Rank 0 receives kTotal bytes; rank 1 writes one cell by hand, which says that it is all of them.
Seen receive(std::uint32_t bytes, bool comes_first) {
  MemoryStore store;
  Seen seen;
  const auto meeting = [&](int rank) {
    return StoreBootstrap(store, "cells", rank, 2, std::chrono::seconds(20));
  };
  std::thread peer([&] {
    StoreBootstrap mine = meeting(1);
    Inboxes boxes(mine, {});
    Ring out = boxes.ring(0, 1);
    if (!comes_first) mine.allgather("receiving");
    Transfer whole;
    whole.key = {.context = 1, .number = 1};
    whole.bytes = kTotal;
    Cell64& cell = *out.free_cell();
    shm::head(cell, CellKind::eager, whole);
    cell.bytes = bytes;
    out.publish();
    if (comes_first) mine.allgather("written");
    mine.allgather("over");
  });
  StoreBootstrap mine = meeting(0);
  const auto transport = make_shm(mine, {});
  transport->listen(&seen.notes);
  std::vector<std::byte> memory(kTotal);
  Transfer t;
  t.peer = 1;
  t.key = {.context = 1, .number = 1};
  t.bytes = kTotal;
  t.parts.push_back({memory.data(), kTotal});
  if (comes_first) {
    mine.allgather("waiting");
    while (!transport->progress()) std::this_thread::yield();
  }
  transport->recv(t);
  if (!comes_first) {
    mine.allgather("receiving");
    while (!transport->progress()) std::this_thread::yield();
  }
  seen.done = t.done;
  transport->cancel(t);
  mine.allgather("over");
  peer.join();
  return seen;
}

TEST_CASE("a cell that holds less than the message says is not taken for the message") {
  for (const bool comes_first : {false, true}) {
    CAPTURE(comes_first);
    const Seen seen = receive(64, comes_first);
    CHECK(!seen.done);
    CHECK(seen.notes.misfitting == 1);
    CHECK(seen.notes.came == 64);
    CHECK(seen.notes.expected == kTotal);
    const Seen whole = receive(kTotal, comes_first);
    CHECK(whole.done);
    CHECK(whole.notes.misfitting == 0);
  }
}

struct Heard : Notes {
  std::string what;
  void aborted(int, std::uint64_t context, const std::string& why) override {
    what += str(context, ": ", why, "\n");
  }
};

TEST_CASE("the text of an abort that is longer than a cell, or than the ring, arrives") {
  MemoryStore store;
  const ShmConfig small{.bytes = 8192};
  const std::string longer(3000, 'a'), shorter = "rank 1 left", longest(9000, 'b');
  std::thread peer([&] {
    StoreBootstrap mine(store, "words", 1, 2, std::chrono::seconds(20));
    const auto transport = make_shm(mine, small);
    Heard heard;
    transport->listen(&heard);
    for (std::uint64_t context = 1; const std::string& why : {longer, shorter, longest})
      transport->abort(0, context++, why);
    while (transport->owes()) transport->progress();
    mine.allgather("over");
  });
  StoreBootstrap mine(store, "words", 0, 2, std::chrono::seconds(20));
  const auto transport = make_shm(mine, small);
  Heard heard;
  transport->listen(&heard);
  const auto lines = [&] { return std::ranges::count(heard.what, '\n'); };
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (lines() < 3 && std::chrono::steady_clock::now() < end) transport->progress();
  CHECK(heard.what ==
        str("1: ", longer, "\n2: ", shorter, "\n3: ", shortened(longest, 4096), "\n"));
  mine.allgather("over");
  peer.join();
}

// Its peer may still answer to it: until then it means no other message. The table does not grow.
TEST_CASE("tokens: one of a message that was given up is not reused before it is answered") {
  constexpr int kTimes = 20000;
  shm::Tokens tokens;
  Transfer stays, goes;
  const std::uint32_t first = tokens.add(&stays);
  std::set<std::uint32_t> old;
  for (int i = 0; i < kTimes; ++i) {
    const std::uint32_t token = tokens.add(&goes);
    REQUIRE(token != shm::kNoToken);
    REQUIRE(old.insert(token).second);
    REQUIRE(tokens.find(token) == &goes);
    tokens.retire(&goes);
    REQUIRE(tokens.find(token) == nullptr);
  }
  CHECK(tokens.find(first) == &stays);
  CHECK(tokens.places() < 100);
  const std::uint32_t again = tokens.add(&goes);
  tokens.drop(again);   // answered: nothing more comes for it
  CHECK(tokens.add(&goes) == again);
}

}  // namespace
}  // namespace paceline
