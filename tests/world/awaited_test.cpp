// Chains of waiting ranks: a rank asks each rank of the chain for its state, and names the last.
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bootstrap/open_world.hpp"
#include "expect_fault.hpp"
#include "loop/loop.hpp"
#include "world/passed_on.hpp"

namespace paceline {
namespace {

constexpr int kRanks = 6;

// Answers of rank 0's peers, and the peers that it has asked.
struct Said {
  std::vector<PeerStatus> status{std::size_t(kRanks), {0, {}, 1, true}};
  std::vector<int> asked;
  int awaited = -1;   // rank that rank 0 waits for, by its latest look

  void silence(int rank) {
    status[std::size_t(rank)].silent = true;
    status[std::size_t(rank)].current = false;
  }
};

class Telling : public test::PassedOn {
 public:
  Telling(std::unique_ptr<Transport> below, Said& said) : PassedOn(std::move(below)), said_(said) {}
  void listen(Listener* listener) override { PassedOn::listen(listener_ = listener); }
  void check_peers() override { said_.awaited = listener_->awaits(); }
  void ask(int peer) override { said_.asked.push_back(peer); }
  PeerStatus peer_status(int peer) const override { return said_.status[std::size_t(peer)]; }

 private:
  Said& said_;
  Listener* listener_ = nullptr;
};

// Rank 0 alone makes this call, and gives up.
struct Alone {
  LoopNet net{kRanks, {}};
  Said& said;
  Communicator comm;
  std::vector<float> in = std::vector<float>(kRanks), out = std::vector<float>(kRanks);

  explicit Alone(Said& what)
      : said(what),
        comm(join_transport(std::make_unique<Telling>(net.endpoint(0), what), [] {
          WorldConfig config;
          config.progress = Progress::caller;
          config.timeout_ms = 100;
          return config;
        }())) {}
  Call call(Collective collective, int root) {
    return {.collective = collective, .type = Type::f32, .root = root, .input = in.data(),
            .output = out.data(), .count = 1, .algorithm = "linear"};
  }
  std::string gives_up(const Call& call, const std::vector<std::string>& words) {
    Request request = comm.start(call);
    return test::expect_fault(Fault::timeout, words, [&] {
      while (!request.wait_for(30)) {}
    });
  }
  bool has_asked(int rank) const { return std::ranges::count(said.asked, rank) > 0; }
};

// For a scatter from rank 1, which waits for rank 2, which waits for rank 3.
struct Row : Said {
  Row() {
    status[1].awaits = 2;
    status[2].awaits = 3;
  }
};

}  // namespace

TEST_CASE("awaited: the end of a row is asked and named, and nobody beside it") {
  Row row;
  row.silence(3);
  row.status[4].awaits = 5;
  Alone rank(row);
  CHECK(rank.gives_up(rank.call(Collective::scatter, 1), {"rank 3 does not answer"}) == "");
  for (int peer = 0; peer < kRanks; ++peer) CHECK(rank.has_asked(peer) == (peer > 0 && peer < 4));
}

TEST_CASE("awaited: a row may go round, and say what is no rank") {
  for (const int end : {0, 1, 2, 3, -2, kRanks, std::numeric_limits<int>::max(),
                        std::numeric_limits<int>::min()}) {
    Row row;
    row.status[3].awaits = end;
    Alone rank(row);
    CHECK(rank.gives_up(rank.call(Collective::scatter, 1), {"rank 1 is inside"}) == "");
    CHECK(rank.has_asked(3));
    CHECK_FALSE(rank.has_asked(4));
  }
}

TEST_CASE("awaited: what a rank was about when it was last heard of leads nowhere") {
  Row row;
  row.status[1].current = false;
  Alone rank(row);
  CHECK(rank.gives_up(rank.call(Collective::scatter, 1), {"rank 1"}) == "");
  CHECK_FALSE(rank.has_asked(2));
}

TEST_CASE("awaited: of several the one is passed on that leads to a rank that does not answer") {
  Said said;
  said.status[1].awaits = 0;
  said.status[2].awaits = -1;
  said.status[3].awaits = said.status[5].awaits = 4;
  said.silence(4);
  Alone rank(said);
  CHECK(rank.gives_up(rank.call(Collective::gather, 0), {"rank 4 does not answer"}) == "");
  CHECK(said.awaited == 3);
}

TEST_CASE("awaited: else one that is not waiting for this rank itself") {
  Said said;
  for (const std::size_t peer : {1, 2, 3, 5}) said.status[peer].awaits = 0;
  Alone rank(said);
  CHECK(rank.gives_up(rank.call(Collective::gather, 0), {"rank 4"}) == "");
  CHECK(said.awaited == 4);
}

}  // namespace paceline
