// Ranks of the mpi transport that leave early, late and in the middle of messages, while any of
// them may be delayed at any moment: all their calls of MPI stay legal.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "transport/mpi/transport.hpp"
#include "world/mpi_net.hpp"
#include "world/turns.hpp"
#include "world/worlds.hpp"

namespace paceline {
namespace {

using test::MpiNet;
using test::Turns;

constexpr int kRanks = 3;
constexpr double kTicksS[] = {4e-3, 3e-4};  // the shorter one shows what happens at once

struct Deaf : Listener {
  bool arrives(int, const Key&, const Fingerprint&) override { return true; }
  void misfits(int, const Key&, std::size_t, std::size_t) override {}
  void aborted(int, std::uint64_t, const std::string&) override {}
  void lost(int, const std::string&) override {}
};

struct Message {
  Transfer transfer;
  std::vector<std::byte> memory;
  Message(int peer, int seq, std::size_t bytes) : memory(bytes) {
    transfer.peer = peer;
    transfer.key = {.context = 1, .seq = seq};
    transfer.bytes = bytes;
    transfer.parts.push_back({memory.data(), bytes});
  }
};

// Sends to all, receives from some, progresses for a while, gives up the rest, and leaves.
void live(MpiNet& net, int rank, std::uint64_t seed) {
  Random random(seed * kRanks + std::uint64_t(rank));
  Deaf listener;
  const auto clock = net.port(rank);
  const MpiConfig in_pieces{.eager_bytes = 256, .chunk_bytes = 192};
  const auto transport = mpi::make_transport(net.port(rank), in_pieces);
  transport->listen(&listener);
  std::vector<std::unique_ptr<Message>> messages;
  for (int peer = 0; peer < kRanks; ++peer)
    for (int seq = 0; seq < 3 && peer != rank; ++seq) {
      const std::size_t bytes = std::size_t(seq) * 1500 + 8;
      messages.push_back(std::make_unique<Message>(peer, seq, bytes));
      transport->send(messages.back()->transfer);
      if (random.below(3) == 0) continue;  // without a receive
      messages.push_back(std::make_unique<Message>(peer, seq, bytes));
      transport->recv(messages.back()->transfer);
    }
  for (const double until_s = clock->now_s() + net.tick_s * double(random.below(400));
       clock->now_s() < until_s;) {
    transport->progress();
    transport->check_peers();
  }
  for (const auto& message : messages)
    if (!message->transfer.done) transport->cancel(message->transfer);
  transport->leave(Leaving::ended);
}

std::string trouble_of(std::uint64_t seed) {
  MpiNet net(kRanks, seed);
  net.tick_s = kTicksS[seed % 2];
  Turns turns(kRanks, seed);
  net.pass = [&](int rank) { turns.pass(rank); };
  return turns.run([&](int rank) { live(net, rank, seed); });
}

}  // namespace

TEST_CASE("ranks may leave at any time, and be held up anywhere") {
  const auto seeds = std::uint64_t(test::by_length(100, 300, 4000));
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const std::string trouble = trouble_of(seed);
    CHECK_MESSAGE(trouble.empty(), "seed " << seed << ": " << trouble);
  }
}

}  // namespace paceline
