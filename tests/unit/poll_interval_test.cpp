// Sleep of a rank between two looks for messages of an MPI, and the events that end it.
#include "transport/mpi/poll_interval.hpp"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>

#include "transport/mpi/sockets.hpp"

using paceline::mpi::PollInterval;
using paceline::mpi::Sockets;

namespace {

constexpr int kMostUs = 100'000;

// Handles `count` messages, all of which a socket has announced, or none.
void messages(PollInterval& naps, int count, bool told) {
  for (int i = 0; i < count; ++i) {
    naps.woke(told);
    naps.look(true);
  }
}

// Two ends of a connection over the loopback.
struct Connection {
  Connection() {
    const int door = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in at = {};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(at);
    auto* address = reinterpret_cast<sockaddr*>(&at);
    REQUIRE(bind(door, address, length) == 0);
    REQUIRE(listen(door, 1) == 0);
    REQUIRE(getsockname(door, address, &length) == 0);
    here = socket(AF_INET, SOCK_STREAM, 0);
    REQUIRE(connect(here, address, length) == 0);
    there = accept(door, nullptr, nullptr);
    REQUIRE(there >= 0);
    close(door);
  }
  ~Connection() {
    close(here);
    close(there);
  }
  void say() const { REQUIRE(send(there, "x", 1, 0) == 1); }
  int here = -1, there = -1;
};

// Consumes the events of new connections: they can be written to.
void settle(Sockets& sockets) {
  for (int i = 0; i < 10 && sockets.rest(1000); ++i) {
  }
}

bool ends_early(Sockets& sockets) {
  const auto begin = std::chrono::steady_clock::now();
  const bool told = sockets.rest(60'000'000);
  return told && std::chrono::steady_clock::now() - begin < std::chrono::seconds(30);
}

}  // namespace

TEST_CASE("naps: short where nothing would end them") {
  PollInterval naps;
  CHECK(naps.next_us(10, kMostUs) == PollInterval::kShortestUs);
  CHECK(naps.next_us(20, kMostUs) == PollInterval::kShortestUs);
  messages(naps, PollInterval::kSure - 1, true);
  CHECK(naps.next_us(30, kMostUs) == PollInterval::kShortestUs);
  CHECK(naps.next_us(40, kMostUs) == PollInterval::kShortestUs);
}

TEST_CASE("naps: long where sockets tell of messages, longer after an age without any") {
  PollInterval naps;
  messages(naps, PollInterval::kSure, true);
  CHECK(naps.next_us(10, kMostUs) == PollInterval::kToldUs);
  const int grown = naps.next_us(10 + 2e-6 * PollInterval::kPart * PollInterval::kToldUs, kMostUs);
  CHECK(grown >= 2 * PollInterval::kToldUs - 1);
  CHECK(grown <= 2 * PollInterval::kToldUs + 1);
  CHECK(naps.next_us(11, kMostUs) == PollInterval::kLongestUs);
  CHECK(naps.next_us(11, 200) == 200);
  naps.look(false);
  CHECK(naps.next_us(12, kMostUs) == PollInterval::kLongestUs);
  naps.stir();
  CHECK(naps.next_us(13, kMostUs) == PollInterval::kToldUs);
}

TEST_CASE("naps: messages that no socket tells of make them short again, and are reported once") {
  PollInterval naps;
  messages(naps, 100, true);
  CHECK_FALSE(naps.missed());
  messages(naps, PollInterval::kSurest - PollInterval::kSure + 1, false);
  CHECK(naps.missed());
  CHECK_FALSE(naps.missed());
  naps.next_us(10, kMostUs);
  CHECK(naps.next_us(11, kMostUs) == PollInterval::kShortestUs);
}

TEST_CASE("sockets: what comes ends a nap, once, read or not") {
  const Connection connection;
  Sockets sockets;
  sockets.search(0);
  settle(sockets);
  CHECK_FALSE(sockets.rest(1000));
  connection.say();
  CHECK(ends_early(sockets));
  CHECK_FALSE(sockets.rest(1000));
  connection.say();
  CHECK(ends_early(sockets));
}

TEST_CASE("sockets: those that are new are found, though not at once") {
  Sockets sockets;
  sockets.search(0);
  settle(sockets);
  const Connection connection;
  sockets.search(0.001);
  CHECK_FALSE(sockets.rest(1000));
  sockets.search(100);
  CHECK(ends_early(sockets));   // it can be written to
}
