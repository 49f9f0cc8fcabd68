// Worlds of ranks that reach each other's staging buffers inside nodes, and real data through them
// over the loop transport.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/random.hpp"
#include "bootstrap/open_world.hpp"
#include "loop/loop.hpp"
#include "world/collective_case.hpp"
#include "world/worlds.hpp"

namespace paceline::test {

using NodeOf = std::vector<int>;

// 2 + 2, 3 + 2, 1 + 3 + 2, in turn, scattered, and one rank to a node except two.
inline const NodeOf kNodes[] = {{0, 0, 1, 1},       {0, 0, 0, 1, 1},    {0, 1, 1, 1, 2, 2},
                                {0, 1, 0, 1, 0, 1}, {0, 1, 1, 0, 2, 0}, {0, 1, 2, 2}};

inline Shape shape_on(const Algorithm& a, const NodeOf& nodes) {
  Shape shape;
  shape.collective = a.collective;
  shape.ranks = static_cast<int>(nodes.size());
  shape.nodes = nodes;
  return shape;
}

// Returns the ranks in a random order.
inline std::vector<int> drawn(int count, Random& random) {
  std::vector<int> order = all_ranks(count);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

struct LoopNodes {
  LoopNet net;
  std::vector<Communicator> ranks;

  // `fast` allows every algorithm.
  explicit LoopNodes(const NodeOf& nodes, std::size_t staging = StagingMemory::kBytes,
                     Numbers numbers = Numbers::fast)
      : net(static_cast<int>(nodes.size()), {.seed = 7}) {
    WorldConfig config;
    config.progress = Progress::caller;
    config.nodes = nodes;
    config.node_staging = staging;
    config.numbers = numbers;
    for (std::size_t r = 0; r < nodes.size(); ++r)
      ranks.push_back(join_transport(net.endpoint(static_cast<int>(r)), config));
  }

  // Starts the cases one after the other without waiting, each on the ranks in a seeded order, and
  // steps the ranks in such an order. Returns what is wrong with the results.
  template <class T>
  std::string run(const std::vector<Case>& cases, Random& random) {
    struct Started {
      std::unique_ptr<test::Buffers<T>> data;
      Request request;
      int rank;
    };
    std::vector<Started> all;
    for (const Case& c : cases)
      for (const int r : drawn(c.ranks, random)) {
        auto data = std::make_unique<test::Buffers<T>>(c, r);
        Request request = ranks[std::size_t(r)].start(data->call());
        all.push_back({std::move(data), std::move(request), r});
      }
    long looks = 0;
    for (std::size_t open = all.size(); open > 0;) {
      if (++looks > 5000000) return cases[0].name() + ": does not end";
      Started& one = all[random.below(all.size())];
      if (!one.request.valid() || !one.request.test()) continue;
      one.request = Request();
      --open;
    }
    for (const Started& one : all)
      if (std::string bad = one.data->check(); !bad.empty()) return bad;
    return {};
  }
};

// Returns the other ranks' errors for a call that rank `absent` does not make, or makes
// differently.
inline std::vector<std::string> told(LoopNodes& world, const Algorithm& a, int absent,
                                     std::size_t its_count = 0) {
  const int p = static_cast<int>(world.ranks.size());
  std::vector<std::unique_ptr<test::Buffers<float>>> data;
  std::vector<Request> requests(std::size_t(p), Request{});
  std::vector<std::string> errors(std::size_t(p), "");
  for (int r = 0; r < p; ++r) {
    data.push_back(std::make_unique<test::Buffers<float>>(
        Case{a.collective, a.name, p, r == absent && its_count ? its_count : 99}, r));
    Call call = data.back()->call();
    call.timeout_ms = 300;
    if (r == absent && its_count == 0) continue;
    try {
      requests[std::size_t(r)] = world.ranks[std::size_t(r)].start(call);
    } catch (const Error& error) {   // it knows already
      errors[std::size_t(r)] = error.what();
    }
  }
  for (int open = 1; open > 0;) {
    open = 0;
    for (int r = 0; r < p; ++r) {
      Request& one = requests[std::size_t(r)];
      try {
        if (one.valid() && one.test()) one = Request();
        open += one.valid();
      } catch (const Error& error) {
        errors[std::size_t(r)] = error.what();
        one = Request();
      }
    }
  }
  return errors;
}

}  // namespace paceline::test
