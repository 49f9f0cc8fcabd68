// Real data through ranks of several nodes, over the loop transport: the chosen algorithms, those
// that the caller may name, and their results.
#include <doctest/doctest.h>

#include <memory>

#include "base/error.hpp"
#include "base/random.hpp"
#include "bootstrap/open_world.hpp"
#include "loop/loop.hpp"
#include "world/collective_case.hpp"
#include "world/nodes.hpp"

using namespace paceline;
using namespace paceline::test;

namespace {

struct LoopNodes {
  LoopNet net;
  std::vector<Communicator> ranks;

  explicit LoopNodes(const std::vector<int>& nodes)
      : net(static_cast<int>(nodes.size()), {.seed = 3}) {
    WorldConfig config;
    config.progress = Progress::caller;
    config.nodes = nodes;
    for (std::size_t r = 0; r < nodes.size(); ++r)
      ranks.push_back(join_transport(net.endpoint(static_cast<int>(r)), config));
  }

  // Starts the case on all ranks and steps them in a seeded order. Returns what is wrong.
  template <class T>
  std::string run(const Case& c, Random& random) {
    std::vector<std::unique_ptr<test::Buffers<T>>> data;
    std::vector<Request> requests;
    for (int r = 0; r < c.ranks; ++r) {
      data.push_back(std::make_unique<test::Buffers<T>>(c, r));
      requests.push_back(ranks[std::size_t(r)].start(data.back()->call()));
    }
    for (int open = c.ranks; open > 0;) {
      Request& one = requests[random.below(std::size_t(c.ranks))];
      if (!one.valid() || !one.test()) continue;
      one = Request();
      --open;
    }
    for (const auto& one : data)
      if (std::string bad = one->check(); !bad.empty()) return bad;
    return {};
  }

  std::string explain(const Case& c) {
    test::Buffers<float> data(c, 0);
    return ranks[0].explain(data.call());
  }
};

bool says(const std::string& text, const char* words) { return text.find(words) != text.npos; }

std::string error_of(LoopNodes& world, const Case& c) {
  Random random(1);
  try {
    return world.run<float>(c, random);
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("nodes: what is asked for gives the right results, wherever the ranks are") {
  long cases = 0;
  for (const std::vector<int>& nodes :
       {std::vector{0, 0, 1, 1}, {0, 1, 0, 1}, {7, 3, 3, 7}, {0, 1, 2, 0, 1, 2}, {0, 0, 0, 1, 1, 1},
        {2, 1, 1, 2, 0, 0}, {0, 1, 2, 3, 0, 1, 2, 3}, {0, 1, 0, 0, 1}, {0, 1, 2, 1, 1, 2}}) {
    LoopNodes world(nodes);
    Random random(nodes.size());
    const int p = static_cast<int>(nodes.size());
    for (const Algorithm* a : registry()) {
      const bool one_unit = units_of({.collective = a->collective, .ranks = 2}) == 1;
      if (a->is_load_store() || a->claims()) continue;   // wants staging buffers
      if (!a->by_nodes() && !one_unit &&
          !a->cost({.collective = a->collective, .ranks = 2}, {}).in_node_order) continue;
      for (std::size_t count : {0, 1, p - 1, 257})
        for (int root : has_root(a->collective) ? std::vector{0, 1, p - 1} : std::vector{0})
          for (int turn = 0; turn < 4; ++turn, ++cases) {
            Case c{a->collective, a->name, p, count, root, turn % 2 == 1};
            c.op = turn < 2 ? Op::sum : Op::average;
            if (turn == 2) c.segments = 3, c.window = 2;
            c.uneven = turn == 3 && !one_unit;
            const std::string bad = world.run<double>(c, random);
            CHECK_MESSAGE(bad.empty(), bad);
          }
    }
  }
  MESSAGE(cases, " cases");
}

TEST_CASE("nodes: what goes by nodes is chosen on nodes alone, and it is said why") {
  constexpr std::size_t kShort = 16, kLong = 1 << 18;
  LoopNodes even({0, 1, 0, 1, 0, 1}), uneven({0, 1, 0, 1, 1, 1}), single({0, 1, 2, 3, 4, 5});
  Random random(5);
  for (Collective c : {Collective::allreduce, Collective::broadcast, Collective::reduce,
                       Collective::reduce_scatter, Collective::allgather})
    for (std::size_t count : {kShort, kLong}) {
      const Case here{c, "", 6, count};
      CAPTURE(here.name());
      CHECK(says(even.explain(here), "2 nodes of 3 ranks"));
      CHECK(says(uneven.explain(here), "2 nodes of 2 to 4 ranks"));
      if (count == kShort)
        for (LoopNodes* world : {&even, &uneven}) CHECK(says(world->explain(here), "hierarchical"));
      CHECK(says(single.explain(here), "one rank on each node"));
      const std::string why = single.explain(here);
      CHECK(!says(why, "hierarchical"));
      CHECK(!says(why, "multilane"));
      for (LoopNodes* world : {&even, &uneven, &single}) {
        const std::string bad = world->run<double>(here, random);
        CHECK_MESSAGE(bad.empty(), bad);
      }
    }
  CHECK(says(even.explain({Collective::allreduce, "", 6, kLong}), "multilane"));
}

TEST_CASE("nodes: who asks to go by nodes where there are none is refused, and told why") {
  LoopNodes single({0, 1, 2, 3, 4, 5}), one({0, 0, 0, 0, 0, 0}), uneven({0, 1, 0, 1, 1, 1});
  for (const Algorithm* a : written_for_nodes()) {
    const Case c{a->collective, a->name, 6, 100};
    for (LoopNodes* world : {&single, &one}) {
      const std::string error = error_of(*world, c);
      CHECK_MESSAGE(says(error, "several nodes, at least one of them with several"), error);
      CHECK_MESSAGE(says(error, "Use another algorithm, or auto."), error);
    }
    if (!a->claims()) CHECK(error_of(uneven, c) == "");
  }
}

TEST_CASE("nodes: a part of a world has nodes of its own") {
  LoopNodes world({0, 1, 0, 1, 1});
  const Case c{Collective::allreduce, "", 4, 16};
  test::Buffers<float> data(c, 0);
  const std::vector<int> first{0, 1, 2, 3};
  Communicator part = world.ranks[0].subgroup(first, 7);
  CHECK(says(part.explain(data.call()), "2 nodes of 2 ranks"));
  CHECK(says(world.explain({Collective::allreduce, "", 5, 16}), "2 nodes of 2 to 3 ranks"));
}
