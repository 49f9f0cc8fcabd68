// Copies between ranks' buffers, and how a rank that gives up gets its own back.
#include "engine/shm/single_copy.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <functional>
#include <future>
#include <thread>
#include <vector>

#include "loop/loop.hpp"

using namespace paceline;

namespace {

constexpr std::uint64_t kCall = 1;
constexpr std::size_t kLong = (2u << 20) + 12345;   // in three pieces

// Those of a rank, with a say in each of its copies.
class Watched : public StagingBuffers {
 public:
  explicit Watched(StagingBuffers& stages) : stages_(stages) {}
  std::size_t bytes() const override { return stages_.bytes(); }
  StagingBuffer open(std::uint64_t context) override { return stages_.open(context); }
  std::optional<StagingBuffer> find(int peer, std::uint64_t context) override {
    return stages_.find(peer, context);
  }
  void reserve(std::uint64_t context, std::size_t bytes) override {
    stages_.reserve(context, bytes);
  }
  bool is_found(const StagingBuffer& own,
                int peer) const override { return stages_.is_found(own, peer); }
  void close(std::uint64_t context) override { stages_.close(context); }
  const std::string& why_not_attached() const override { return stages_.why_not_attached(); }
  const char* attached_by() const override { return stages_.attached_by(); }
  int copy(const PeerCopy& wanted) override {
    if (before_copy) before_copy();
    return stages_.copy(wanted);
  }
  bool has_ended(int peer) const override { return stages_.has_ended(peer); }

  std::function<void()> before_copy;

 private:
  StagingBuffers& stages_;
};

struct Rank {
  std::unique_ptr<Transport> transport;
  Watched stages;
  ShmChannel view;
  Attached attached;
  std::vector<std::byte> input, output;

  Rank(LoopNet& net, int rank)
      : transport(net.endpoint(rank)),
        stages(*transport->stages()),
        view(stages, 7, {0, 1}, rank),
        attached(view, rank),
        input(kLong, std::byte(10 + rank)),
        output(kLong, std::byte(20 + rank)) {
    view.open();
  }
  void come() {
    view.enter(kCall, 0, 1, {});
    attached.show(kCall, input.data(), output.data());
    view.signal(kCall, 1);
  }
};

struct Two {
  LoopNet net{2, {}};
  Rank one{net, 0}, other{net, 1};
  Two() {
    one.come();
    other.come();
    REQUIRE(one.view.has_come(1, kCall, 1));
    REQUIRE(other.view.has_come(0, kCall, 1));
  }
  int write(std::size_t bytes = kLong - 100) {   // into the other's output, from its 100th byte on
    return one.attached.copy({1, false, true, 100, one.input.data(), bytes});
  }
  int read() { return one.attached.copy({1, false, false, 0, one.input.data(), kLong}); }
};

}  // namespace

TEST_CASE("attached: reads and writes where the peer has said, in pieces") {
  Two ranks;
  CHECK(ranks.write() == 0);
  CHECK(ranks.other.output[99] == std::byte{21});
  CHECK(ranks.other.output[100] == std::byte{10});
  CHECK(ranks.other.output[kLong - 1] == std::byte{10});
  CHECK(ranks.one.attached.copy({1, true, false, 5, ranks.one.output.data(), 1000}) == 0);
  CHECK(ranks.one.output[999] == std::byte{11});
  CHECK(ranks.one.output[1000] == std::byte{20});
  CHECK(ranks.write(0) == 0);
}

TEST_CASE("attached: what has been taken back, or has ended, is left alone") {
  Two ranks;
  ranks.other.attached.withdraw();
  CHECK(ranks.write() == Attached::kGone);
  CHECK(ranks.other.output[100] == std::byte{21});
  CHECK(ranks.other.attached.copy({0, true, false, 0, ranks.other.output.data(), 1}) == 0);
  ranks.net.kill(0);
  CHECK(ranks.other.attached.copy({0, true, false, 0, ranks.other.output.data(), 1}) ==
        Attached::kGone);
}

TEST_CASE("attached: who takes back what is just being copied waits for the piece, no longer") {
  bool writes = false;
  SUBCASE("written") { writes = true; }
  SUBCASE("read") {}
  Two ranks;
  std::promise<void> started, go_on;
  int copies = 0;
  ranks.one.stages.before_copy = [&] {
    if (++copies > 1) return;
    started.set_value();
    go_on.get_future().wait();
  };
  int result = 0;
  std::thread copier([&] { result = writes ? ranks.write() : ranks.read(); });
  started.get_future().wait();
  auto taken_back = std::async(std::launch::async, [&] { ranks.other.attached.withdraw(); });
  CHECK(taken_back.wait_for(std::chrono::milliseconds(50)) == std::future_status::timeout);
  go_on.set_value();
  taken_back.wait();
  copier.join();
  CHECK(result == Attached::kGone);
  CHECK(copies == 1);
}

TEST_CASE("attached: nobody waits for a copier that has ended, or is in no such call") {
  const auto begun = std::chrono::steady_clock::now();
  Two ranks;
  ranks.one.view.exported(0, kCall).inside = 2;   // as if it copied from the other
  ranks.net.kill(0);
  ranks.other.attached.withdraw();
  LoopNet net{2, {}};
  Rank early{net, 0}, late{net, 1};
  late.view.exported(1, kCall).inside = 1;   // what was in its line before
  early.come();
  early.attached.withdraw();
  CHECK(std::chrono::steady_clock::now() - begun < std::chrono::seconds(20));
}
