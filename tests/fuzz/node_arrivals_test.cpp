// Ranks that share nodes and expect some of them to be late: they tell each other in messages and
// staging buffers, name a late node's ranks in the same call, and keep their bits.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "base/random.hpp"
#include "fuzz/nodes.hpp"
#include "world/worlds.hpp"

namespace paceline::fuzz {
namespace {

using NodeOf = std::vector<int>;

const NodeOf kPairs{0, 0, 1, 1, 2, 2, 3, 3};
constexpr std::size_t kLong = 1u << 17;   // f32: worth notes for up to ten ranks
constexpr double kLongS = kBetaS * 4 * kLong;
constexpr std::size_t kAll = StagingMemory::kBytes;   // of staging: the message goes in segments

// The values of a node's ranks from left to right, and of the nodes likewise: nearly what a ring of
// the nodes makes of them, and just that where the operation is exact.
std::vector<float> by_nodes(const NodeOf& node_of, Op op) {
  const auto combined = [op](float a, float b) { return op == Op::max ? std::max(a, b) : a + b; };
  const int nodes = *std::max_element(node_of.begin(), node_of.end()) + 1;
  std::vector<float> all;
  for (int node = 0; node < nodes; ++node) {
    std::vector<float> sum;
    for (std::size_t rank = 0; rank < node_of.size(); ++rank) {
      if (node_of[rank] != node) continue;
      std::vector<float> own(kLong);
      for (std::size_t i = 0; i < kLong; ++i) own[i] = value(static_cast<int>(rank), i);
      if (sum.empty()) sum = std::move(own);
      else std::transform(sum.begin(), sum.end(), own.begin(), sum.begin(), combined);
    }
    if (all.empty()) all = std::move(sum);
    else std::transform(all.begin(), all.end(), sum.begin(), all.begin(), combined);
  }
  return all;
}

bool is_near(const std::vector<float>& a, const std::vector<float>& b) {
  return std::equal(a.begin(), a.end(), b.begin(),
                    [](float x, float y) { return std::abs(x - y) <= 1e-5f * std::abs(y); });
}

// What ranks say before each call, and how long it takes from its last entry on, in n beta; how
// many results are not those of the first call, or not the sum.
struct Calls {
  std::vector<std::vector<std::string>> explained;
  std::vector<double> rest;
  int wrong = 0;
  std::string trouble;
};

Calls calls_on(const NodeOf& node_of, std::size_t staging, int calls,
               const std::function<double(int call, int rank)>& late, Op op = Op::sum) {
  const std::size_t p = node_of.size();
  Nodes nodes(node_of, 7, staging);
  Calls out;
  out.explained.assign(std::size_t(calls), std::vector<std::string>(p));
  std::vector<double> entered_s(std::size_t(calls), 0), rest_s(std::size_t(calls), 0);
  const std::vector<float> sum = by_nodes(node_of, op);
  std::vector<std::vector<float>> first(p);
  const bool ended = nodes.run(learning, [&](Communicator& world, int rank) {
    std::vector<float> buffer(kLong);
    for (std::size_t c = 0; c < std::size_t(calls); ++c) {
      for (std::size_t i = 0; i < kLong; ++i) buffer[i] = value(rank, i);
      if (const double by = late(int(c), rank); by > 0) nodes.fibers.sleep(by * kLongS);
      Call call = sum_of(buffer);
      call.op = op;
      out.explained[c][std::size_t(rank)] = world.explain(call);
      entered_s[c] = std::max(entered_s[c], nodes.fibers.now_s());
      world.run(call);
      rest_s[c] = std::max(rest_s[c], nodes.fibers.now_s() - entered_s[c]);
      if (c == 0) first[std::size_t(rank)] = buffer;
      out.wrong += buffer != first[std::size_t(rank)] || (op == Op::max && buffer != sum);
    }
  });
  for (const auto& result : first) out.wrong += result != first[0] || !is_near(result, sum);
  for (double s : rest_s) out.rest.push_back(s / kLongS);
  out.trouble = ended ? nodes.trouble() : "does not end";
  return out;
}

bool is_tail(const std::string& explained) { return says(explained, "multilane_tail_"); }

}  // namespace

TEST_CASE("arrivals: ranks that share nodes name a late one in the same call, and it pays") {
  const auto one = [](int, int rank) { return rank == 3 ? 2.0 : 0.0; };
  const auto node = [](int, int rank) { return rank / 2 == 2 ? 2.0 : 0.0; };
  for (const std::size_t staging : {kAll, std::size_t{0}})
    for (const bool whole_node : {false, true}) {
      const Calls c = whole_node ? calls_on(kPairs, staging, 40, node)
                                 : calls_on(kPairs, staging, 40, one);
      CAPTURE(staging);
      CAPTURE(whole_node);
      CHECK(c.trouble == "");
      CHECK(c.wrong == 0);   // the same bits before and after
      int switched = 0;
      for (const auto& call : c.explained) {
        switched += is_tail(call[0]);
        for (const std::string& said : call) CHECK(said == call[0]);
        CHECK_MESSAGE(call[0].starts_with("multilane"), call[0]);
        CHECK_MESSAGE(says(call[0], "multilane_tail_as_ring") == is_tail(call[0]), call[0]);
      }
      CHECK(switched >= 15);
      MESSAGE(c.explained.back()[0]);
      MESSAGE("first call ", c.rest[2], ", last call ", c.rest.back(),
              " of the message's time after the last arrival");
      CHECK(c.rest[2] > 1.45);
      CHECK(c.rest.back() < 1.35);
    }
}

TEST_CASE("arrivals: what is exact in any order goes by whichever form leaves least") {
  for (const std::size_t staging : {kAll, std::size_t{0}}) {
    const Calls c = calls_on(kPairs, staging, 40,
                             [](int, int rank) { return rank == 6 ? 2.0 : 0.0; }, Op::max);
    CHECK(c.trouble == "");
    CHECK(c.wrong == 0);
    CHECK_MESSAGE(!says(c.explained.front()[0], "multilane_"), c.explained.front()[0]);
    CHECK_MESSAGE(is_tail(c.explained.back()[0]), c.explained.back()[0]);
    CHECK(c.rest.back() < 1.30);
  }
}

TEST_CASE("arrivals: on nodes of any sizes, whoever comes when, the bits are the same") {
  constexpr int kCalls = 32;
  for (const NodeOf& node_of : {NodeOf{0, 0, 0, 1, 2, 2, 3}, {0, 1, 2, 3, 0, 1, 2, 3},
                                {0, 1, 2, 2, 2, 1, 3}})
    for (std::uint64_t seed = 1; seed <= test::by_length<std::uint64_t>(1, 2, 40); ++seed) {
      Random random(seed);
      std::vector<double> late(node_of.size() * kCalls);
      const std::size_t slow = random.below(node_of.size());
      for (std::size_t i = 0; i < late.size(); ++i)
        late[i] = (i % node_of.size() == slow && i / node_of.size() % 12 < 11 ? 2 : 0) +
                  1e-2 * double(random.below(9));
      const Calls c = calls_on(node_of, seed % 2 ? kAll : 0, kCalls, [&](int call, int rank) {
        return late[std::size_t(call) * node_of.size() + std::size_t(rank)];
      });
      CHECK(c.trouble == "");
      CHECK(c.wrong == 0);
      CHECK(std::any_of(c.explained.begin(), c.explained.end(),
                        [](const auto& call) { return is_tail(call[0]); }));
    }
}

TEST_CASE("arrivals: nobody late on nodes, nothing changes; too few nodes, nothing is learned") {
  const Calls c = calls_on(kPairs, kAll, 30, [](int call, int rank) {
    return 1e-3 * double((call * 8 + rank) * 7919 % 200);
  });
  CHECK(c.trouble == "");
  CHECK(c.wrong == 0);
  CHECK_MESSAGE(says(c.explained.back()[0], "taken for late: none"), c.explained.back()[0]);
  const Calls three = calls_on({0, 0, 1, 1, 2, 2}, kAll, 20, [](int, int rank) {
    return rank == 1 ? 2.0 : 0.0;
  });
  CHECK(three.trouble == "");
  for (const auto& call : three.explained) CHECK(!says(call[0], "multilane_"));
}

}  // namespace paceline::fuzz
