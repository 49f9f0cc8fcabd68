// Streams of the mpi transport: those to one peer follow each other, unless it wants a later one.
#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <numeric>
#include <set>
#include <vector>

#include "base/random.hpp"
#include "runtime/call.hpp"
#include "transport/mpi/streams.hpp"
#include "transport/mpi/transport.hpp"
#include "world/mpi_net.hpp"
#include "world/worlds.hpp"

namespace paceline {
namespace {

using test::MpiNet;

constexpr std::size_t kChunk = 192, kLong = 8 * kChunk;
constexpr std::uint32_t kElsewhere = 10;   // the first call of another communicator
constexpr MpiConfig kInPieces{.eager_bytes = 64, .chunk_bytes = kChunk};

struct Expecting : Listener {
  bool arrives(int, const Key&, const Fingerprint&) override { return true; }
  void misfits(int, const Key&, std::size_t, std::size_t) override { FAIL("it misfits"); }
  void aborted(int, std::uint64_t, const std::string& why) override { FAIL(why); }
  void lost(int, const std::string& why) override { FAIL(why); }
};

// Byte i of a message, pseudo-random in message and place.
std::byte byte_of(std::size_t number, std::size_t i) {
  return std::byte(Random::mix(number << 32 | i));
}

// Rank 0 sends, rank 1 receives. A message is known by its place among all.
class Pair {
 public:
  explicit Pair(std::uint64_t seed) : net_(2, seed), random_(seed) {
    for (int r = 0; r < 2; ++r) {
      ranks_.push_back(mpi::make_transport(net_.port(r), kInPieces));
      ranks_.back()->listen(&listener_);
    }
  }

  std::size_t send(std::uint32_t call, int priority = 0, std::size_t bytes = kLong) {
    const std::size_t number = sent_.size();
    Message& m = add(sent_, bytes);
    for (std::size_t i = 0; i < bytes; ++i) m.data[i] = byte_of(number, i);
    describe(m.transfer, 1, call, int(number), priority);
    ranks_[0]->send(m.transfer);
    return number;
  }
  // `number`: the one that send() returned, or will return.
  void receive(std::size_t number, std::uint32_t call, int priority = 0,
               std::size_t bytes = kLong) {
    Message& m = add(received_, bytes);
    describe(m.transfer, 0, call, int(number), priority);
    ranks_[1]->recv(m.transfer);
  }
  // Gives up all that was sent. Returns the seconds that the sender waited.
  double give_up() {
    const double begun_s = net_.now_s;
    for (Message& m : sent_) ranks_[0]->cancel(m.transfer);
    return net_.now_s - begun_s;
  }
  bool has(std::size_t place) const { return received_[place].transfer.done; }   // of a receive
  bool has_left(std::size_t number) const { return sent_[number].transfer.done; }

  void step(int times = 1) {
    for (int i = 0; i < times; ++i) ranks_[random_.below(2)]->progress();
  }
  // True if all messages with a receive arrive with the right bytes.
  bool ends() {
    const auto is_done = [](const Message& m) { return m.transfer.done.load(); };
    for (int i = 0; i < 20000 && !std::ranges::all_of(received_, is_done); ++i) step();
    return std::ranges::all_of(received_, [&](const Message& m) {
      std::size_t right = 0;
      while (right < m.data.size() &&
             m.data[right] == byte_of(std::size_t(m.transfer.key.seq), right))
        ++right;
      return is_done(m) && right == m.data.size();
    });
  }
  // Tells the sender the rate of its links.
  void expect_rate(double bytes_per_s) { ranks_[0]->expect_rate(bytes_per_s); }
  std::size_t longest_under_way() const {   // of chunks, in bytes
    std::size_t longest = 0;
    for (const MpiNet::Sent& one : net_.ranks[1].coming)
      if (one.tag > 0) longest = std::max(longest, one.bytes);
    return longest;
  }
  // Chunks on their way that lie in the callers' buffers.
  std::ptrdiff_t unstaged() const {
    const auto is_in = [](const Message& m, const std::byte* data) {
      return data >= m.data.data() && data < m.data.data() + m.data.size();
    };
    return std::ranges::count_if(net_.ranks[1].coming, [&](const MpiNet::Sent& one) {
      return one.tag > 0 &&
             std::ranges::any_of(sent_, [&](const Message& m) { return is_in(m, one.data); });
    });
  }
  // Returns the streams whose chunks are on their way.
  std::set<int> under_way() const {
    std::set<int> tags;
    for (const MpiNet::Sent& one : net_.ranks[1].coming)
      if (one.tag > 0) tags.insert(one.tag);
    return tags;
  }

 private:
  struct Message {
    std::vector<std::byte> data;
    Transfer transfer;
  };
  static Message& add(std::deque<Message>& to, std::size_t bytes) {
    Message& m = to.emplace_back();
    m.data.resize(bytes);
    m.transfer.parts = {{m.data.data(), bytes}};
    m.transfer.bytes = bytes;
    return m;
  }
  static void describe(Transfer& t, int peer, std::uint32_t call, int number, int priority) {
    t.peer = peer;
    t.key = {.context = call < kElsewhere ? 7u : 8u, .number = call, .seq = number};
    t.priority = priority;
  }

  MpiNet net_;
  Random random_;
  Expecting listener_;
  std::deque<Message> sent_, received_;
  std::vector<std::unique_ptr<Transport>> ranks_;
};

std::uint64_t seeds() { return std::uint64_t(test::by_length(5, 20, 400)); }

TEST_CASE("streams: to a rank that comes late they follow each other, the oldest first") {
  constexpr std::size_t kMessages = 6;
  for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
    CAPTURE(seed);
    Pair pair(seed);
    for (std::size_t i = 0; i < kMessages; ++i) pair.send(1);
    pair.step(50);
    CHECK(pair.under_way().size() == 1);
    for (std::size_t i = 0; i < kMessages; ++i) pair.receive(i, 1);
    std::size_t most = 0;
    for (int i = 0; i < 20000 && !pair.has(kMessages - 1); ++i) {
      pair.step();
      most = std::max(most, pair.under_way().size());
      for (std::size_t k = 1; k < kMessages; ++k)
        if (pair.has(k)) CHECK(pair.has(k - 1));
    }
    CHECK(most > 1);    // where one ends
    CHECK(most <= 3);   // and a chunk of another has not been told of
    CHECK(pair.ends());
  }
}

TEST_CASE("streams: a rank receives them one by one in any order") {
  constexpr int kMessages = 5;
  for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
    CAPTURE(seed);
    Pair pair(seed);
    Random random(seed);
    std::vector<std::size_t> order(kMessages);
    std::iota(order.begin(), order.end(), 0);
    for (std::size_t i = order.size() - 1; i > 0; --i)
      std::swap(order[i], order[random.below(i + 1)]);
    const std::uint64_t before = random.below(kMessages + 1);   // number sent before
    for (std::uint64_t i = 0; i < before; ++i) pair.send(1, 0, kLong - 64 * i);
    pair.step(int(random.below(40)));
    pair.receive(order[0], 1, 0, kLong - 64 * order[0]);
    pair.step(int(random.below(40)));
    for (std::uint64_t i = before; i < kMessages; ++i) pair.send(1, 0, kLong - 64 * i);
    REQUIRE(pair.ends());   // while the others have no receive
    for (std::size_t i = 1; i < order.size(); ++i) {
      pair.receive(order[i], 1, 0, kLong - 64 * order[i]);
      REQUIRE(pair.ends());
    }
  }
}

TEST_CASE("streams: of a call they come as they were sent, where receives follow a little later") {
  for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
    CAPTURE(seed);
    Pair pair(seed);
    const std::size_t bytes = seed % 2 == 0 ? kChunk : kLong;
    for (int i = 0; i < 3; ++i) pair.send(1, 0, bytes);
    pair.step(50);
    for (const std::size_t number : {2, 1}) {
      pair.receive(number, 1, 0, bytes);
      pair.step(20);
      CHECK_FALSE(pair.has(0));   // earlier messages come before it
    }
    pair.receive(0, 1, 0, bytes);
    CHECK(pair.ends());
  }
}

TEST_CASE("streams: those of a call that a rank has yet to begin hold no other call up") {
  for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
    CAPTURE(seed);
    Pair pair(seed);
    const bool is_early = seed % 2 == 0;
    const std::uint32_t later = seed % 4 < 2 ? 2 : kElsewhere;
    if (is_early) pair.receive(2, 1);
    for (const std::uint32_t call : {later, later, 1u, 1u}) pair.send(call);
    pair.step(50);
    if (!is_early) pair.receive(2, 1);
    pair.receive(3, 1);
    for (int i = 0; i < 700 && !(pair.has(0) && pair.has(1)); ++i) pair.step();   // not for long
    REQUIRE((pair.has(0) && pair.has(1)));
    pair.receive(1, later);
    pair.receive(0, later);
    CHECK(pair.ends());
  }
}

TEST_CASE("streams: of calls under way together the older one's go first") {
  for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
    CAPTURE(seed);
    Pair pair(seed);
    pair.send(1);
    for (int i = 0; i < 3; ++i) pair.send(2);
    pair.send(1);
    pair.step(50);
    for (const std::size_t number : {0, 4}) pair.receive(number, 1);
    for (const std::size_t number : {1, 2, 3}) pair.receive(number, 2);
    for (int i = 0; i < 20000 && !pair.has(4); ++i) {
      pair.step();
      if (pair.has(3)) CHECK(pair.has(1));   // the first of call 2 may have flowed already
    }
    CHECK(pair.ends());
  }
}

TEST_CASE("streams: the more urgent goes first, however urgent both are") {
  for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
    for (const int priority : {0, 1 << 16, kMostUrgent - 1, kLeastUrgent}) {
      CAPTURE(seed);
      CAPTURE(priority);
      Pair pair(seed);
      for (int i = 0; i < 4; ++i) pair.send(1, priority);
      pair.send(2, priority + 1);
      pair.step(50);
      for (std::size_t number = 0; number < 4; ++number) pair.receive(number, 1, priority);
      pair.receive(4, 2, priority + 1);
      for (int i = 0; i < 20000 && !pair.has(4); ++i) {
        pair.step();
        REQUIRE(!pair.has(3));
      }
      CHECK(pair.ends());
    }
  }
}

TEST_CASE("streams: chunks are as long as the sender's links ask, whatever is under way") {
  constexpr std::size_t kFew = 3, kMessage = 5000;   // no whole cache lines
  for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
    CAPTURE(seed);
    Pair pair(seed);
    Random random(seed);
    for (std::size_t i = 0; i < kFew; ++i) pair.send(1, 0, kMessage);
    pair.step(int(random.below(30)));
    CHECK(pair.longest_under_way() <= kChunk);
    pair.expect_rate(1e5);   // 10 ms of it
    for (std::size_t i = 0; i < kFew; ++i) pair.send(1, 0, kMessage);
    pair.expect_rate(1e3);   // chunks are no shorter than at first
    pair.send(1, 0, kMessage);
    for (std::size_t i = 0; i <= 2 * kFew; ++i) pair.receive(i, 1, 0, kMessage);
    std::size_t longest = 0;
    for (int i = 0; i < 20000 && !pair.has(2 * kFew); ++i) {
      pair.step();
      longest = std::max(longest, pair.longest_under_way());
    }
    CHECK(longest > 4 * kChunk);
    CHECK(longest <= 1000);
    CHECK(pair.ends());
  }
}

TEST_CASE("streams: a call's chunks are staged until its peer has taken one, and no longer") {
  for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
    CAPTURE(seed);
    Pair pair(seed);
    std::size_t number = 0;
    for (const std::uint32_t call : {1u, 2u, kElsewhere}) {
      for (int i = 0; i < 3; ++i, ++number) {
        pair.send(call, 0, kChunk);
        CHECK(pair.under_way().size() == 1);
        CHECK(pair.unstaged() == (i > 0 ? 1 : 0));
        pair.step(int((seed + number) % 20));
        pair.receive(number, call, 0, kChunk);
        REQUIRE(pair.ends());
        while (!pair.has_left(number)) pair.step();
      }
    }
  }
}

TEST_CASE("streams: an urgent one that nobody receives yet holds nothing up") {
  for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
    CAPTURE(seed);
    Pair pair(seed);
    Random random(seed);
    for (int i = 0; i < 3; ++i) pair.receive(std::size_t(i), 1);
    for (int i = 0; i < 3; ++i) pair.send(1);
    pair.step(int(random.below(30)));
    pair.send(2, 5);
    REQUIRE(pair.ends());
    pair.receive(3, 2, 5);
    CHECK(pair.ends());
  }
}

TEST_CASE("streams: those that are given up together wait once for a peer that reads nothing") {
  constexpr std::size_t kSent = 6;
  int waits = 0;
  for (std::uint64_t seed = 1; seed <= 20 * seeds(); ++seed) {
    CAPTURE(seed);
    Pair pair(seed);
    Random random(seed);
    const auto call_of = [](std::size_t i) { return std::uint32_t(i) + (i % 2 ? kElsewhere : 1); };
    for (std::size_t i = 0; i < kSent; ++i) pair.send(call_of(i), 0, 30 * kChunk);
    pair.step(int(random.below(60)));
    for (std::size_t i = 0; i < kSent; ++i)
      if (random.below(2)) pair.receive(i, call_of(i), 0, 30 * kChunk);
    pair.step(int(random.below(60)));
    const double took_s = pair.give_up();
    CHECK(took_s < mpi::Streams::kLetGoS + 1);
    waits += took_s > mpi::Streams::kLetGoS;
  }
  CHECK(waits > 10);
}

}  // namespace
}  // namespace paceline
