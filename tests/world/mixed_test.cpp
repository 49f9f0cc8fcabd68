// One graph of staging buffers inside nodes and messages between them: proven, its mistakes
// rejected, priced, and executed. That all small worlds are proven is in verify_test.cpp.
#include <doctest/doctest.h>

#include "coll/algorithms.hpp"
#include "simulate/simulate.hpp"
#include "tune/choose.hpp"
#include "world/loop_nodes.hpp"
#include "world/mutate.hpp"

using namespace paceline;
using namespace paceline::test;

namespace {

std::vector<const Algorithm*> mixed_algorithms() {
  std::vector<const Algorithm*> out;
  std::copy_if(registry().begin(), registry().end(), std::back_inserter(out),
               [](const Algorithm* a) { return a->by_nodes(); });
  return out;
}

// Keeps the edges of all other steps, so that nothing but one step changes.
template <class Change>
World with_step(const World& world, int rank, std::uint32_t step, Change&& change) {
  World out = world;
  change(out[std::size_t(rank)].steps[step], out[std::size_t(rank)]);
  return out;
}

}  // namespace

TEST_CASE("mixed: proven on nodes of equal and unequal size, whole and in pieces") {
  int proven = 0;
  for (const Algorithm* a : mixed_algorithms())
    for (const NodeOf& nodes : kNodes)
      for (int variant = 0; variant < 4; ++variant)
        for (const Cut& pipe : kPipes) {
          Shape shape = shape_on(*a, nodes);
          shape.fused = variant % 2 == 1;
          shape.in_place = variant / 2 == 1 && a->collective != Collective::broadcast;
          if (has_root(a->collective)) shape.root = variant / 2 * (shape.ranks - 1);
          const World world = piped(*a, shape, pipe);
          const Verdict verdict = verify(world);
          CHECK_MESSAGE(verdict, describe(*a, shape), ": ", verdict.fault);
          for (std::uint64_t seed = 0; verdict && seed < 3; ++seed) {
            const Verdict shaken = shake(world, seed);
            CHECK_MESSAGE(shaken, describe(*a, shape), ": ", shaken.fault);
          }
          proven += bool(verdict);
        }
  MESSAGE(proven, " worlds proven");
}

TEST_CASE("mutants: mixed schedules that are wrong are rejected") {
  int rejected = 0;
  const auto reject = [&](const World& mutant, const std::string& what) {
    CHECK_MESSAGE(!verify(mutant), what, " goes unnoticed");
    ++rejected;
  };
  for (const Algorithm* a : mixed_algorithms())
    for (const NodeOf& nodes : kNodes) {
      const Shape shape = shape_on(*a, nodes);
      const World world = make_world(*a, shape);
      const std::string on = str(" in ", describe(*a, shape));
      for (const Mutant& m : lost_edges(world)) reject(m.world, m.what + on);
      for (const Mutant& m : everywhere(world, "lost flag", is(Kind::signal), erase))
        reject(m.world, m.what + on);
      for (const Mutant& m : everywhere(world, "lost message", is(Kind::recv), erase))
        reject(m.world, m.what + on);
      for (int rank = 0; rank < shape.ranks; ++rank) {
        const Schedule& s = world[std::size_t(rank)];
        for (std::uint32_t i = 0; i < s.steps.size(); ++i) {
          const bool reads_mate = std::any_of(s.begin(s.steps[i]), s.end(s.steps[i]),
                                              [](const Segment& x) { return x.owner != kOwn; });
          if (!reads_mate) continue;
          World early = world;   // reads a mate's staging buffer without waiting for its flag
          std::vector<Edge> edges = edges_of(s);
          std::erase_if(edges, [&](const Edge& e) { return e.second == i; });
          set_edges(early[std::size_t(rank)], edges);
          reject(early, "read too early" + at(rank, i, s) + on);
          World far = world;   // memory of a rank of another node
          for (Segment& x : far[std::size_t(rank)].segments)
            for (int r = 0; r < shape.ranks && x.owner != kOwn; ++r)
              if (nodes[std::size_t(r)] != nodes[std::size_t(rank)]) x.owner = r;
          reject(far, "memory of another node" + at(rank, i, s) + on);
        }
      }
    }
  MESSAGE(rejected, " mutants rejected");
}

TEST_CASE("mutants: signals across nodes, writes into others' buffers, flags that run ahead") {
  Shape shape = shape_on(allreduce_multilane, {0, 0, 1, 1});
  shape.cut.segments = 4;
  shape.cut.window = 2;
  const World world = make_world(allreduce_multilane, shape);
  REQUIRE(verify(world));
  World across = world;
  for (const auto& [rank, kind, peer] : {std::tuple{0, Kind::signal, 2}, {2, Kind::wait, 0}}) {
    Schedule& s = across[std::size_t(rank)];
    Step step;
    step.kind = kind;
    step.peer = peer;
    s.steps.push_back(step);
    s.edge_begin.push_back(s.edge_begin.back());
    s.indegree.push_back(0);
  }
  CHECK(verify(across).fault.find("of another node") != std::string::npos);

  const Schedule& first = world[0];
  int written = 0, ahead = 0;
  for (std::uint32_t i = 0; i < first.steps.size(); ++i) {
    if (first.steps[i].kind == Kind::copy && first.begin(first.steps[i])->space == Space::scratch) {
      const World theirs = with_step(world, 0, i, [](const Step& step, Schedule& s) {
        s.segments[step.first].owner = 1;
      });
      CHECK_MESSAGE(!verify(theirs), "a write into rank 1's buffer, step ", i);
      ++written;
    }
    // Without what makes it follow the signals before: then its number may be seen too early.
    if (first.steps[i].kind == Kind::signal && first.steps[i].seq > 0) {
      World loose = world;
      std::vector<Edge> edges = edges_of(first);
      std::erase_if(edges, [&](const Edge& e) { return e.second == i; });
      set_edges(loose[0], edges);
      CHECK_MESSAGE(!verify(loose), "a flag that runs ahead, step ", i);
      ++ahead;
    }
  }
  CHECK(written > 0);
  CHECK(ahead > 0);

  World unlike = world;   // a slot that is longer on one rank
  unlike[1].slots[0].shapes[0].blocks += 1;
  CHECK(verify(unlike).fault.find("laid out") != std::string::npos);
}

TEST_CASE("mixed: what it costs is what its schedules take") {
  for (const Algorithm* a : mixed_algorithms())
    for (const NodeOf& nodes : {NodeOf{0, 0, 1, 1}, {0, 0, 0, 1, 1, 1}, {0, 1, 0, 1, 0, 1, 0, 1},
                                {0, 0, 1, 1, 2, 2, 3, 3}, {0, 0, 0, 0, 1, 1, 1, 1}}) {
      const Shape shape = shape_on(*a, nodes);
      const World world = make_world(*a, shape);
      const Cost cost = a->cost(world[0].problem, {});
      const double n = 4.0 * world[0].cuts * world[0].units;
      const auto span = [&](const Link& across, const Link& inside, double gamma) {
        Machine m;
        m.across = across;
        m.inside = inside;
        m.gamma_s_per_byte = gamma;
        return simulate(world, std::size_t(world[0].cuts), 4, m).span_s();
      };
      CAPTURE(describe(*a, shape));
      CHECK(span({1, 0}, {}, 0) == doctest::Approx(cost.rounds));
      CHECK(span({0, 1}, {}, 0) == doctest::Approx(cost.volume * n));
      CHECK(span({}, {1, 0}, 0) == doctest::Approx(cost.near_rounds));
      CHECK(span({}, {0, 1}, 0) == doctest::Approx(cost.near_volume * n));
      CHECK(span({}, {}, 1) == doctest::Approx(cost.reduced * n));
    }
}

TEST_CASE("mixed: the right results over loop, for all nodes, lengths, operations and pieces") {
  long cases = 0;
  for (const NodeOf& nodes : kNodes) {
    LoopNodes world(nodes);
    Random random(nodes.size());
    const int p = static_cast<int>(nodes.size());
    for (const Algorithm* a : mixed_algorithms())
      for (std::size_t count : {0, 1, p - 1, 257, 1003})
        for (int root : has_root(a->collective) ? std::vector{0, 1, p - 1} : std::vector{0})
          for (int turn = 0; turn < 4; ++turn, ++cases) {
            Case c{a->collective, a->name, p, count, root, turn % 2 == 1};
            c.op = turn < 2 && has_op(a->collective) ? Op::sum : Op::average;
            if (turn >= 2) c.segments = 5, c.window = 1 + turn % 3;
            std::string bad = world.run<double>({c}, random);
            CHECK_MESSAGE(bad.empty(), bad);
            bad = world.run<std::int32_t>({c, c, c}, random);   // several under way
            CHECK_MESSAGE(bad.empty(), bad);
          }
  }
  MESSAGE(cases, " cases");
}

TEST_CASE("mixed: other algorithms on such nodes send messages as ever, between mixed calls") {
  LoopNodes world({0, 1, 0, 1, 1});
  Random random(9);
  const Case barrier{Collective::barrier, "", 5, 0};
  const Case mixed{Collective::allreduce, "multilane", 5, 70};
  for (const Algorithm* a : registry()) {
    if (a->is_load_store() || a->by_nodes()) continue;
    Case c{a->collective, a->name, 5, 67};
    CHECK(world.run<double>({mixed, c, barrier, mixed}, random) == "");
    c.segments = 3, c.window = 2;
    CHECK(world.run<double>({c, mixed, barrier}, random) == "");
  }
}

TEST_CASE("mixed: without staging buffers, and with little room, on all ranks alike") {
  LoopNodes none({0, 0, 0, 1, 1}, 0), little({0, 0, 0, 1, 1}, 4096);
  Random random(3);
  for (const Algorithm* a : mixed_algorithms()) {
    if (a->claims()) continue;   // claimed_nodes_test.cpp
    const Case named{a->collective, a->name, 5, 1000}, chosen{a->collective, "", 5, 1 << 16};
    CHECK(none.run<float>({named}, random) == "");   // messages inside nodes
    CHECK(none.run<float>({chosen}, random) == "");
    CHECK(little.run<float>({{a->collective, a->name, 5, 1 << 12}}, random) == "");
    CHECK(little.run<float>({chosen}, random) == "");
    if (a->expects_late()) continue;   // messages inside nodes, whatever there is
    Case whole{a->collective, a->name, 5, 1 << 14};
    whole.segments = 2, whole.window = 2;   // of which it asks for too much at a time
    for (int rank = 0; rank < 5; ++rank) {   // refused before anything is sent, on every rank
      test::Buffers<float> data(whole, rank);
      CHECK_THROWS_AS(little.ranks[std::size_t(rank)].run(data.call()), Error);
    }
  }
}

TEST_CASE("mixed: a rank that does not come, is killed or calls otherwise is named everywhere") {
  for (const Algorithm* a : {&allreduce_multilane, &allreduce_hierarchical, &allgather_multilane})
    for (int absent : {0, 1, 2}) {
      const std::string name = str("rank ", absent);
      for (const char* how : {"late", "killed", "otherwise"}) {
        LoopNodes world({0, 1, 1, 1, 2, 2});
        CAPTURE(a->name);
        CAPTURE(name);
        CAPTURE(how);
        if (how == std::string("killed")) world.net.kill(absent);
        const std::vector<std::string> errors =
            told(world, *a, absent, how == std::string("otherwise") ? 98 : 0);
        int named = 0;
        for (int r = 0; r < 6; ++r) {
          if (r == absent) continue;
          CHECK(errors[std::size_t(r)] != "");
          named += errors[std::size_t(r)].find(name) != std::string::npos;
        }
        CHECK_MESSAGE(named == 5, errors[3], " | ", errors[5]);
      }
    }
}
