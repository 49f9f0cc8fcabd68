// The machine that ranks of several nodes assume: asked for, or measured and agreed on.
#include "machine/probe.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "bootstrap/open_world.hpp"
#include "expect_fault.hpp"
#include "loop/loop.hpp"

namespace paceline {
namespace {

constexpr std::size_t kBytes = 1u << 20;

// Calls body(communicator) on threads, a rank each, with these nodes and this option.
void on_nodes(const std::vector<int>& nodes, const std::string& machine,
              const std::function<void(Communicator&)>& body) {
  const int p = int(nodes.size());
  LoopNet net(p, {.seed = 7});
  std::vector<std::thread> threads;
  for (int r = 0; r < p; ++r)
    threads.emplace_back([&, r] {
      WorldConfig config;
      config.progress = Progress::caller;
      config.nodes = nodes;
      config.machine = machine;
      Communicator joined = join_transport(net.endpoint(r), config);
      body(joined);
    });
  for (std::thread& thread : threads) thread.join();
}

// Returns explain() of a broadcast, by rank.
std::vector<std::string> explained(const std::vector<int>& nodes, const std::string& machine,
                                   const std::function<void(Communicator&)>& first = {}) {
  std::vector<std::string> out(nodes.size());
  std::vector<std::byte> data(kBytes);
  on_nodes(nodes, machine, [&](Communicator& all) {
    if (first) first(all);
    Call call;
    call.collective = Collective::broadcast;
    call.output = data.data();
    call.count = kBytes;
    out[std::size_t(all.rank())] = all.explain(call);
  });
  return out;
}

bool all_equal(const std::vector<std::string>& texts) {
  return std::set(texts.begin(), texts.end()).size() == 1;
}

TEST_CASE("ranks of several nodes choose for the machine that is asked for") {
  const std::vector<int> nodes{0, 1, 2, 3, 4, 5};
  const auto usual = explained(nodes, "usual"), slow = explained(nodes, "5e-3,4e-8,1e-10");
  CHECK(all_equal(usual));
  CHECK(all_equal(slow));
  CHECK(usual[0].find("edr-100g: alpha 1.5 us, 100 Gbit/s") != std::string::npos);
  CHECK(usual[0].find("(usual)") != std::string::npos);
  CHECK(slow[0].find("alpha 5000 us, 0.2 Gbit/s") != std::string::npos);
  CHECK(usual[0].substr(0, usual[0].find(':')) != slow[0].substr(0, slow[0].find(':')));
}

TEST_CASE("ranks of one node ask for nothing and are told nothing") {
  const auto found = explained({0, 0, 0}, "probe");
  CHECK(found[0].find("between nodes") == std::string::npos);
}

TEST_CASE("what is measured is the same on all ranks, and in what they split off") {
  for (const std::vector<int>& nodes : {std::vector{0, 1}, std::vector{0, 0, 1, 1, 2},
                                        std::vector{0, 1, 2, 3, 4},
                                        std::vector{0, 1, 2, 3, 4, 5, 6, 7},
                                        std::vector{0, 1, 2, 3, 4, 5, 6, 7, 8}}) {
    std::vector<std::string> all(nodes.size()), part(nodes.size());
    on_nodes(nodes, "probe", [&](Communicator& world) {
      Communicator half = world.dup();
      all[std::size_t(world.rank())] = settings_of(world.assumed().machine);
      part[std::size_t(world.rank())] = describe(half.assumed());
    });
    CHECK(all_equal(all));
    CHECK(all_equal(part));
    CHECK(part[0].find("probed: alpha") != std::string::npos);
    CHECK(part[0].find("measured at the start between") != std::string::npos);
    const double task_s = machine_from(all[0]).task_s;
    CHECK(task_s > 0);
    CHECK(task_s != Machine().task_s);   // not the default
  }
}

TEST_CASE("ranks that have found different figures take the worst of each") {
  const auto different = [](const Communicator& all) {
    const double r = all.rank() + 1;
    return LinkFit{1e-5 * r, 4e-8 / r, 0.9 + 0.1 * r, 0.9 + 0.1 * r, 2.5 / r, 1e-10, 2e-5 * r,
                   1e-5 * r, 1e-5, false, 3e-6 * r};
  };
  std::vector<std::string> agreed(4), mutant(4);
  on_nodes({0, 1, 2, 3}, "usual", [&](Communicator& all) {
    const auto place = std::size_t(all.rank());
    const Assumed found = agree_on_links(all, different(all));
    CHECK(found.machine.task_s == 12e-6);
    agreed[place] = describe(found);
    const LinkFit mine = different(all);   // without asking the others
    Machine own;
    own.across = link_of(mine, {8 << 10, 16 << 10, 32 << 10}, 4);
    mutant[place] = describe(own);
  });
  CHECK(all_equal(agreed));
  CHECK(agreed[0] == "probed: alpha 40 us (30.1696 in flight; 40 while all send, 70 % of "
                     "it for that), 0.2 Gbit/s "
                     "(0.08 in messages of more than "
                     "8 KiB), reduce 10 GB/s "
                     "(measured at the start between 4 nodes)");
  CHECK(!all_equal(mutant));
}

TEST_CASE("where measuring fails on a rank, all take the usual machine") {
  std::vector<std::string> found(3);
  on_nodes({0, 1, 2}, "usual", [&](Communicator& all) {
    const LinkFit mine{1e-5, 4e-8, 1, 1, 1, 1e-10, 0, 0, 0, all.rank() == 1};
    found[std::size_t(all.rank())] = describe(agree_on_links(all, mine));
  });
  CHECK(all_equal(found));
  CHECK(found[0].find("edr-100g: ") == 0);
  CHECK(found[0].find("(usual, since measuring at the start failed)") != std::string::npos);
}

TEST_CASE("every node is in one ring of two or more") {
  for (int count = 2; count <= 40; ++count) {
    std::vector<int> nodes;
    for (int node = 0; node < count; ++node) nodes.insert(nodes.end(), {node, node});
    std::multiset<int> seen;
    for (int rank = 0; rank < 2 * count; rank += 2) {
      const std::vector<int> ring = probing_ring(nodes, rank);
      CHECK(ring == probing_ring(nodes, rank + 1));
      CHECK(ring.size() >= 2);
      CHECK(ring.size() <= 5);
      if (ring.front() == rank) seen.insert(ring.begin(), ring.end());
    }
    CHECK(seen.size() == std::size_t(count));
    CHECK(std::set(seen.begin(), seen.end()).size() == std::size_t(count));
  }
}

}  // namespace
}  // namespace paceline
