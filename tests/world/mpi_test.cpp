// The mpi transport over ports without an MPI: one thread steps all ranks in a seeded order.
#include <doctest/doctest.h>

#include <cstring>
#include <cstddef>
#include <memory>
#include <set>

#include "bootstrap/open_world.hpp"
#include "transport/mpi/streams.hpp"
#include "transport/mpi/transport.hpp"
#include "transport/mpi/wire.hpp"
#include "world/cases.hpp"
#include "world/mpi_net.hpp"
#include "world/worlds.hpp"

namespace paceline {
namespace {

using test::Buffers;
using test::by_length;
using test::Case;
using test::MpiNet;

constexpr MpiConfig kInPieces{.eager_bytes = 256, .chunk_bytes = 192};

struct MpiWorldOfTest {
  MpiNet net;
  std::vector<Communicator> ranks;

  MpiWorldOfTest(int p, std::uint64_t seed, int tags, bool can_post_from_anybody = true)
      : net(p, seed, tags) {
    net.can_post_from_anybody = can_post_from_anybody;
    WorldConfig config;
    config.progress = Progress::caller;
    for (int r = 0; r < p; ++r)
      ranks.push_back(join_transport(mpi::make_transport(net.port(r), kInPieces), config));
  }
};

std::string run_case(MpiWorldOfTest& world, const Case& c, Random& random) {
  std::vector<std::unique_ptr<Buffers<float>>> buffers;
  std::vector<Request> requests;
  for (int r = 0; r < c.ranks; ++r) {
    buffers.push_back(std::make_unique<Buffers<float>>(c, r));
    requests.push_back(world.ranks[std::size_t(r)].start(buffers.back()->call()));
  }
  std::set<std::size_t> open;
  for (std::size_t r = 0; r < requests.size(); ++r) open.insert(r);
  for (long steps = 0; !open.empty(); ++steps) {
    if (steps > 1000000) return c.name() + ": does not end";
    const std::size_t r = random.below(requests.size());
    if (open.contains(r) && requests[r].test()) open.erase(r);
  }
  for (const auto& b : buffers)
    if (std::string bad = b->check(); !bad.empty()) return bad;
  return {};
}

TEST_CASE("every algorithm keeps its contract over the mpi transport") {
  long cases = 0;
  for (int p = 1; p <= by_length(3, 5, 8); ++p)
    for (int tags : {2, 1000}) {  // with two of them, streams wait for each other
      MpiWorldOfTest world(p, 17 + std::uint64_t(p), tags, tags == 2);
      Random random(4711 + std::uint64_t(p));
      test::for_each_case(p, true, [&](const Case& c) {
        if (test::is_load_store(c) || ++cases % by_length(7, 3, 1) != 0) return;
        const std::string bad = run_case(world, c, random);
        CHECK_MESSAGE(bad.empty(), bad);
      });
      CHECK(world.net.ranks[0].messages.size() < 200);  // numbers are used again
    }
  MESSAGE(cases << " cases");
}

// Two ranks, one transport each, and what their listeners hear.
struct Pair {
  struct Heard : Listener {
    bool arrives(int, const Key& key, const Fingerprint&) override {
      return key.context != kUnwelcome;
    }
    void misfits(int, const Key&, std::size_t came, std::size_t expected) override {
      text += str("misfit ", came, " ", expected, ";");
    }
    void aborted(int peer, std::uint64_t, const std::string& why) override {
      text += str("aborted by ", peer, ": ", why, ";");
    }
    void lost(int peer, const std::string& why) override { text += str("lost ", peer, ": ", why); }
    int awaits() const override { return awaited; }
    std::string text;
    int awaited = -1;
  };
  static constexpr std::uint64_t kUnwelcome = 99;

  MpiNet net;
  Heard heard[2];
  std::unique_ptr<Transport> end[2];

  explicit Pair(std::uint64_t seed, int tags = 1000, MpiConfig config = kInPieces)
      : net(2, seed, tags) {
    for (int r = 0; r < 2; ++r) {
      end[r] = mpi::make_transport(net.port(r), config);
      end[r]->listen(&heard[r]);
    }
    net.meanwhile = [this](int r) {
      if (end[1 - r]) end[1 - r]->progress();
    };
  }
  ~Pair() { net.meanwhile = nullptr; }
  void step(int times = 400) {
    for (int i = 0; i < times; ++i) end[net.random.below(2)]->progress();
  }
};

// A transfer with memory of its own, in as many parts as it likes.
struct Owned {
  Transfer transfer;
  std::vector<std::byte> memory;

  Owned(int peer, std::uint64_t context, int seq, std::size_t bytes, Random& random)
      : memory(bytes) {
    transfer.peer = peer;
    transfer.key = {.context = context, .seq = seq};
    transfer.bytes = bytes;
    for (std::size_t at = 0; at < bytes;) {
      const std::size_t now = std::min(bytes - at, 1 + random.below(700));
      transfer.parts.push_back({memory.data() + at, now});
      at += now;
    }
  }
  void fill(int mark) {
    for (std::size_t i = 0; i < memory.size(); ++i)
      memory[i] = static_cast<std::byte>(i * 31 + std::size_t(mark) * 7);
  }
  bool holds(int mark) const {
    Owned wanted(*this);
    wanted.fill(mark);
    return memory == wanted.memory;
  }
  Owned(const Owned& other) : memory(other.memory) {}
};

TEST_CASE("a transfer that is cancelled at any time is not touched afterwards") {
  int finished = 0, cancelled = 0;
  for (std::uint64_t seed = 1; seed <= by_length(100u, 400u, 4000u); ++seed) {
    Pair pair(seed);
    Random& random = pair.net.random;
    const std::size_t bytes = random.below(6000);
    auto given = std::make_unique<Owned>(1, 1, 0, bytes, random);
    auto taken = std::make_unique<Owned>(0, 1, 0, bytes, random);
    Owned other(1, 2, 0, 2000, random), other_taken(0, 2, 0, 2000, random);
    given->fill(1);
    other.fill(2);
    const bool sender_gives_up = random.below(2), receiver_gives_up = random.below(2);
    pair.end[0]->send(given->transfer);
    pair.step(int(random.below(30)));
    if (random.below(4)) pair.end[1]->recv(taken->transfer);
    pair.step(int(random.below(60)));
    if (taken->transfer.done) {
      CHECK(taken->holds(1));
      ++finished;
    }
    // The memory is freed: an address sanitizer sees every later touch.
    if (sender_gives_up) {
      pair.end[0]->cancel(given->transfer);
      given->fill(77);
      given.reset();
    }
    pair.step(int(random.below(10)));
    if (receiver_gives_up) {
      pair.end[1]->cancel(taken->transfer);
      taken->fill(66);
      const Owned before(*taken);
      pair.step(50);
      CHECK(taken->memory == before.memory);
      taken.reset();
      ++cancelled;
    }
    pair.end[0]->send(other.transfer);
    pair.end[1]->recv(other_taken.transfer);
    pair.step();
    CHECK(other.transfer.done);
    CHECK(other_taken.transfer.done);
    CHECK(other_taken.holds(2));
    if (taken && taken->transfer.done) CHECK(taken->holds(1));  // sent before it was given up
    if (given) pair.end[0]->cancel(given->transfer);
    if (taken) pair.end[1]->cancel(taken->transfer);
    pair.step();
  }
  CHECK(finished > 10);
  CHECK(cancelled > 10);
}

TEST_CASE("what is sent at once and lies unread is bounded, whatever the receiver does") {
  Pair pair(5, 1000, {});
  Random& random = pair.net.random;
  std::vector<std::unique_ptr<Owned>> given, taken;
  constexpr int kMessages = 1000;
  constexpr std::size_t kBytes = 5000;  // 5 MB in all
  for (int i = 0; i < kMessages; ++i) {
    given.push_back(std::make_unique<Owned>(1, 1, i, kBytes, random));
    given.back()->fill(i);
    pair.end[0]->send(given.back()->transfer);
    if (i % 10 == 0) pair.end[0]->progress();
  }
  for (int i = 0; i < 5000; ++i) pair.end[1]->progress();
  std::size_t kept = 0;
  pair.end[1]->unexpected({1}, [&](int, const Key&, const Fingerprint&) { ++kept; });
  CHECK(kept == kMessages);  // their headers
  const auto done = std::count_if(given.begin(), given.end(),
                                  [](const auto& g) { return g->transfer.done.load(); });
  CHECK(std::size_t(done) * kBytes < 1200000);
  CHECK(std::size_t(done) * kBytes > 900000);
  for (int i = kMessages; i-- > 0;) {
    taken.insert(taken.begin(), std::make_unique<Owned>(0, 1, i, kBytes, random));
    pair.end[1]->recv(taken.front()->transfer);
    pair.step(10);
  }
  pair.step(20000);
  for (int i = 0; i < kMessages; ++i) {
    CHECK(given[std::size_t(i)]->transfer.done);
    REQUIRE(taken[std::size_t(i)]->transfer.done);
    CHECK(taken[std::size_t(i)]->holds(i));
  }
  // The reader has said what it has read: short messages go at once again.
  Owned last(1, 1, kMessages, 100, random);
  pair.end[0]->send(last.transfer);
  CHECK(last.transfer.done);
}

TEST_CASE("what came for a communicator that is closed goes, with the room it took") {
  Pair pair(5, 1000, {});
  Random& random = pair.net.random;
  std::vector<std::unique_ptr<Owned>> given;
  constexpr int kMessages = 1000;
  for (int i = 0; i < kMessages; ++i) {   // some as streams, since there is no room for all
    given.push_back(std::make_unique<Owned>(1, 1, i, 5000, random));
    pair.end[0]->send(given.back()->transfer);
  }
  Owned other(1, 3, 0, 100, random), other_taken(0, 3, 0, 100, random);
  other.fill(9);
  pair.end[0]->send(other.transfer);
  pair.step(20000);
  CHECK_FALSE(given.back()->transfer.done);
  pair.end[1]->forget(1);
  pair.step(20000);
  for (const std::uint64_t context : {1, 3}) {
    std::size_t kept = 0;
    pair.end[1]->unexpected({context}, [&](int, const Key&, const Fingerprint&) { ++kept; });
    CHECK(kept == (context == 3 ? 1 : 0));
  }
  CHECK(given.back()->transfer.done);
  pair.end[1]->recv(other_taken.transfer);
  pair.step();
  REQUIRE(other_taken.transfer.done);
  CHECK(other_taken.holds(9));
  Owned last(1, 3, 1, 100, random);   // short messages go at once again
  pair.end[0]->send(last.transfer);
  CHECK(last.transfer.done);
}

TEST_CASE("messages of another length, and those that are not welcome, disturb no other") {
  for (const std::size_t bytes : {std::size_t{40}, std::size_t{4000}})
    for (const bool receiver_first : {false, true}) {
      Pair pair(bytes);
      Random& random = pair.net.random;
      Owned given(1, 1, 0, bytes, random), taken(0, 1, 0, bytes + 8, random);
      Owned stranger(1, Pair::kUnwelcome, 0, bytes, random);
      Owned good(1, 1, 1, bytes, random), good_taken(0, 1, 1, bytes, random);
      good.fill(3);
      if (receiver_first) pair.end[1]->recv(taken.transfer);
      for (Owned* o : {&given, &stranger, &good}) pair.end[0]->send(o->transfer);
      pair.step();
      if (!receiver_first) pair.end[1]->recv(taken.transfer);
      pair.end[1]->recv(good_taken.transfer);
      pair.step();
      CHECK(pair.heard[1].text == str("misfit ", bytes, " ", bytes + 8, ";"));
      CHECK_FALSE(taken.transfer.done);
      CHECK(good.transfer.done);
      REQUIRE(good_taken.transfer.done);
      CHECK(good_taken.holds(3));
      pair.end[1]->cancel(taken.transfer);
    }
}

// As a sender would that says more, or less, than its message holds.
TEST_CASE("a message that does not hold what it says is refused before it is used") {
  for (const bool receiver_first : {false, true})
    for (const std::uint64_t total : {40u, 41u, 1000000u, 8u}) {
      Pair pair(total);
      Random& random = pair.net.random;
      Owned given(1, 1, 0, 40, random), taken(0, 1, 0, total, random);
      given.fill(5);
      if (receiver_first) pair.end[1]->recv(taken.transfer);
      pair.end[0]->send(given.transfer);
      MpiNet::Sent& sent = pair.net.ranks[1].coming.back();
      if (sent.copy.empty()) sent.copy.assign(sent.data, sent.data + sent.bytes);
      std::memcpy(sent.copy.data() + offsetof(mpi::Header, total), &total, sizeof(total));
      pair.step();
      if (!receiver_first) pair.end[1]->recv(taken.transfer);
      pair.step();
      const bool is_whole = total == 40;
      CHECK(pair.heard[1].text == (is_whole ? "" : str("misfit 40 ", total, ";")));
      CHECK(taken.transfer.done == is_whole);
      CHECK(taken.holds(5) == is_whole);
      pair.end[1]->cancel(taken.transfer);
    }
}

TEST_CASE("who leaves ends all its messages and calls MPI no more; the last one frees") {
  Pair pair(11);
  Random& random = pair.net.random;
  Owned unread(1, 1, 0, 3000, random), early(1, 1, 1, 30, random);
  pair.end[0]->send(unread.transfer);
  pair.end[0]->send(early.transfer);
  pair.step();
  pair.end[1]->leave(Leaving::interrupted);
  CHECK(pair.net.ranks[1].open() == 0);
  CHECK_FALSE(pair.net.ranks[1].freed);
  const std::size_t calls = pair.net.ranks[1].calls;
  for (int i = 0; i < 50; ++i) pair.end[0]->progress();
  pair.end[0]->check_peers();
  CHECK(pair.heard[0].text.find("lost 1: it has left (interrupted by Ctrl-C)") == 0);
  Owned late(1, 1, 2, 30, random);
  pair.end[0]->send(late.transfer);
  CHECK_FALSE(late.transfer.done);
  for (Owned* o : {&unread, &late}) pair.end[0]->cancel(o->transfer);
  pair.end[0]->leave(Leaving::ended);
  CHECK(pair.net.ranks[0].open() == 0);
  CHECK(pair.net.ranks[0].freed);
  for (auto& end : pair.end) {
    end->progress();
    end->check_peers();
    end->abort(0, 1, "x");
    end.reset();
  }
  CHECK(pair.net.ranks[1].calls == calls);
}

TEST_CASE("a peer answers what it is about; until then its messages tell") {
  Pair pair(12);
  Random& random = pair.net.random;
  const PeerStatus doing{7, {8, 9}, 10, false};
  pair.end[0]->publish_status(doing);
  Owned given(1, 5, 0, 16, random);
  given.transfer.key.number = 3;
  pair.end[0]->send(given.transfer);
  for (int i = 0; i < 20; ++i) pair.end[1]->progress();
  CHECK(pair.end[1]->peer_status(0).number == 3);
  CHECK_FALSE(pair.end[1]->peer_status(0).current);
  Owned awaited(0, 5, 1, 16, random);
  pair.end[1]->recv(awaited.transfer);
  CHECK(pair.end[1]->peer_status(0).awaits == -1);
  pair.heard[0].awaited = 1;
  pair.end[1]->ask(0);
  pair.step();
  const PeerStatus heard = pair.end[1]->peer_status(0);
  CHECK(heard.context == 7);
  CHECK(heard.fingerprint == doing.fingerprint);
  CHECK(heard.number == 10);
  CHECK_FALSE(heard.inside);
  CHECK(heard.current);
  CHECK(heard.awaits == 1);
  pair.end[1]->cancel(awaited.transfer);
}

TEST_CASE("an error of MPI about a peer makes it a lost one, with MPI's words") {
  Pair pair(13);
  Random& random = pair.net.random;
  pair.net.fails_to = 1;
  Owned given(1, 1, 0, 5000, random);
  pair.end[0]->send(given.transfer);
  pair.step();
  pair.end[0]->check_peers();
  CHECK(pair.heard[0].text == "lost 1: MPI cannot reach it: fake error 7");
  CHECK_FALSE(given.transfer.done);
  pair.end[0]->cancel(given.transfer);
}

TEST_CASE("tags go round, and never twice at once") {
  mpi::Tags tags(1, 3);
  CHECK(tags.draw() == 1);
  CHECK(tags.draw() == 2);
  tags.give_back(1);
  CHECK(tags.draw() == 3);
  CHECK(tags.draw() == 1);
  CHECK(tags.draw() == 0);
  tags.give_back(3);
  CHECK(tags.draw() == 3);
}

}  // namespace
}  // namespace paceline
