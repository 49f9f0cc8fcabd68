// The order of numbers=canonical: bit for bit over transports that delay, through every algorithm
// that claims it (canonical_proofs_test.cpp proves that they keep it); and numbers=stable: the same
// bits on all ranks, and again.
#include <doctest/doctest.h>

#include <memory>

#include "base/error.hpp"
#include "bootstrap/open_world.hpp"
#include "coll/algorithms.hpp"
#include "loop/loop.hpp"
#include "transport/mpi/transport.hpp"
#include "tune/choose.hpp"
#include "world/mpi_net.hpp"
#include "world/sums.hpp"
#include "world/worlds.hpp"

namespace paceline {
namespace {

using test::by_length;
using test::Case;
using test::SumBuffers;

// Returns the first world in which an algorithm does not keep the order that it claims to keep.
std::string disproof(const Algorithm& a, int most_ranks) {
  for (const Shape& shape : test::plain_shapes(a, most_ranks)) {
    // Without the canonical order, ranks in turn over nodes are bound node by node.
    const bool in_order = std::is_sorted(shape.nodes.begin(), shape.nodes.end());
    if (shape.scattered || !in_order || !test::accepts(a, shape)) continue;
    World world = make_world(a, shape);
    for (Schedule& s : world) s.problem.canonical = true;
    if (const Verdict verdict = verify(world); !verdict) return verdict.fault;
  }
  return {};
}

struct Ranks {
  LoopNet net;
  std::vector<Communicator> all;

  Ranks(int p, bool canonical, LoopOptions options = {.seed = 5}) : net(p, options) {
    WorldConfig config;
    config.progress = Progress::caller;
    config.numbers = canonical ? Numbers::canonical : Numbers::stable;
    for (int r = 0; r < p; ++r) all.push_back(join_transport(net.endpoint(r), config));
  }
};

using Sums = std::vector<std::unique_ptr<SumBuffers>>;

// One thread steps all ranks in a seeded order.
Sums run(std::vector<Communicator>& ranks, const Case& c, Type type, Random& random) {
  Sums sums;
  for (int r = 0; r < c.ranks; ++r) sums.push_back(std::make_unique<SumBuffers>(c, type, r));
  std::vector<Request> requests(ranks.size());
  std::vector<bool> done(ranks.size());
  for (std::size_t left = ranks.size(), steps = 0; left > 0; ++steps) {
    if (steps > 3000000) FAIL(c.name(), " does not end");
    const std::size_t r = random.below(ranks.size());
    if (done[r]) continue;
    if (!requests[r].valid()) requests[r] = ranks[r].start(sums[r]->call());
    if (!requests[r].test()) continue;
    done[r] = true;
    --left;
  }
  return sums;
}

std::string flaw(const Sums& sums) {
  for (const auto& rank : sums)
    if (std::string bad = rank->check(); !bad.empty()) return bad;
  return {};
}

std::string results(const Sums& sums) {
  std::string all;
  for (const auto& rank : sums) all += rank->result();
  return all;
}

template <class Visit>
void for_each_sum(bool claimed, int p, Visit&& visit) {
  for (const Algorithm* a : registry())
    if (a->can_be_canonical() == claimed && !a->by_nodes() &&
        !a->uses(Access::symmetric) &&   // these: process/canonical_test
        !a->claims())                                    // refused, as in any stable world
      test::for_each_sum(*a, p, visit);
}

TEST_CASE("canonical: every collective that sums has the order, far and near") {
  for (const Collective c :
       {Collective::allreduce, Collective::reduce, Collective::reduce_scatter}) {
    int far = 0, near = 0;
    for (const Algorithm* a : registry())
      if (a->collective == c && a->can_be_canonical()) ++(a->is_load_store() ? near : far);
    CHECK(far >= 2);
    CHECK(near >= 1);
  }
  for (const Algorithm* a : registry()) CHECK((!a->can_be_canonical() || has_op(a->collective)));
}

TEST_CASE("mutants: an algorithm that claims the order and does not keep it") {
  for (const Algorithm* a : registry()) {
    if (!has_op(a->collective) || a->can_be_canonical()) continue;
    const std::string fault = disproof(*a, 5);
    CHECK_MESSAGE(fault.find("added as (") != std::string::npos, name_of(a->collective), "/",
                  a->name, ": ", fault);
  }
  CHECK(disproof(allreduce_direct, 5).empty());
}

TEST_CASE("mutants: two operands in each other's place, and a sum by two steps") {
  const Shape shape{.collective = Collective::allreduce, .ranks = 4, .canonical = true};
  for (const Algorithm* a : {&allreduce_direct, &allreduce_one_shot, &allreduce_symmetric}) {
    World world = make_world(*a, shape);
    REQUIRE(verify(world));
    for (Step& step : world[2].steps)
      if (step.kind == Kind::reduce)
        std::swap(world[2].segments[step.first + 1], world[2].segments[step.first + 2]);
    CHECK(verify(world).fault.find("added as (1 0 2 3)") != std::string::npos);
  }
  CHECK(disproof(reduce_linear, 5).find("((0 1) 2)") != std::string::npos);
}

TEST_CASE("canonical: bit for bit over loop, through every algorithm that claims it") {
  long cases = 0;
  for (int p = 1; p <= by_length(4, 8, 8); ++p) {
    Ranks ranks(p, true);
    Random random(31 + std::uint64_t(p));
    for_each_sum(true, p, [&](const Case& c, Type type) {
      const std::string bad = flaw(run(ranks.all, c, type, random));
      CHECK_MESSAGE(bad.empty(), bad);
      ++cases;
    });
  }
  MESSAGE(cases, " cases");
}

TEST_CASE("canonical: as many ranks as no step of stable adds") {
  const int p = 18;
  Ranks ranks(p, true), grouped(p, false);
  Random random(7);
  int differ = 0;
  for (const Algorithm* a : registry()) {
    if (!a->can_be_canonical() || a->uses(Access::symmetric)) continue;
    for (const Type type : test::kFloats) {
      const Case c{a->collective, a->name, p, 61};
      const std::string bad = flaw(run(ranks.all, c, type, random));
      CHECK_MESSAGE(bad.empty(), bad);
      if (!a->uses(Access::staging)) differ += !flaw(run(grouped.all, c, type, random)).empty();
    }
  }
  CHECK(differ > 0);   // in groups of 16
}

TEST_CASE("canonical: bit for bit over the mpi transport") {
  for (int p : {2, 3, by_length(4, 5, 8)}) {
    test::MpiNet net(p, 12);
    WorldConfig config;
    config.progress = Progress::caller;
    config.numbers = Numbers::canonical;
    std::vector<Communicator> ranks;
    for (int r = 0; r < p; ++r)
      ranks.push_back(join_transport(
          mpi::make_transport(net.port(r), {.eager_bytes = 256, .chunk_bytes = 192}), config));
    Random random(3);
    for_each_sum(true, p, [&](const Case& c, Type type) {
      if (find_algorithm(c.collective, c.algorithm).is_load_store()) return;
      const std::string bad = flaw(run(ranks, c, type, random));
      CHECK_MESSAGE(bad.empty(), bad);
    });
  }
}

// The numbers reveal any other order, in every type.
TEST_CASE("mutants: an algorithm of stable has other bits, one that rounds between for 16 bits") {
  Random random(11);
  const int p = 7;
  Ranks ranks(p, false);
  for (const Algorithm* a : registry()) {
    if (!has_op(a->collective) || a->can_be_canonical() || a->access != Access::messages) continue;
    for (const Type type : test::kFloats) {
      const Case c{a->collective, a->name, p, 300, has_root(a->collective) ? p - 1 : 0};
      // These add from left to right in p - 1 steps: linear, and sorted_chain without late ranks.
      const std::string name = a->name;
      const bool linear = name == "linear" || name == "sorted_chain";
      const bool narrow = type == Type::f16 || type == Type::bf16;
      CHECK_MESSAGE(flaw(run(ranks.all, c, type, random)).empty() == (linear && !narrow),
                    c.name(), " of ", name_of(type));
    }
  }
}

TEST_CASE("canonical: what is chosen keeps the order, and exact operations have all algorithms") {
  for (int p : {1, 2, 3, 8, 64})
    for (const Collective c :
         {Collective::allreduce, Collective::reduce, Collective::reduce_scatter})
      for (std::size_t bytes : {8u, 1u << 12, 1u << 20, 64u << 20})
        for (const char* machine : {"shm", "edr-100g", "ethernet-10g,ranks_per_node=4"})
          for (const bool near : {false, true}) {
            const int root = c == Collective::reduce ? p - 1 : 0;
            Problem problem{.collective = c, .ranks = p, .root = root, .canonical = true};
            problem.one_node = near;
            const ChoiceInputs now{bytes, machine_from(machine), 1u << 20};
            CHECK(choose(problem, now).algorithm->can_be_canonical());
            problem.uneven = c == Collective::reduce_scatter;
            CHECK(choose(problem, now).algorithm->can_be_canonical());
          }
  Ranks ranks(3, true);
  Call call;
  call.collective = Collective::allreduce;
  float values[4] = {};
  call.input = call.output = values;
  call.count = 1;
  call.algorithm = "ring";
  for (const Type type : {Type::f32, Type::i32})
    for (const Op op : {Op::sum, Op::product, Op::max}) {
      call.type = type;
      call.op = op;
      if (is_exact(op, type)) CHECK_NOTHROW(ranks.all[0].explain(call));
      else CHECK_THROWS_AS(ranks.all[0].explain(call), Error);
    }
  call.type = Type::f32;
  call.op = Op::average;
  CHECK_THROWS_WITH_AS(ranks.all[0].explain(call),
                       doctest::Contains("allreduce/ring: numbers is canonical: all ranks' values"),
                       Error);
  CHECK_THROWS_WITH_AS(ranks.all[0].explain(call),
                       doctest::Contains("Use algorithm=direct, or auto."), Error);
  call.algorithm = "";
  CHECK(ranks.all[0].explain(call).find("numbers=canonical") != std::string::npos);
}

TEST_CASE("stable: the same bits on all ranks, and again however messages are delayed") {
  Random random(13);
  int told_apart = 0;
  for (int p : {3, 4, 6}) {
    Ranks quick(p, false, {.seed = 1, .delay_most = 0});
    Ranks slow(p, false, {.seed = 9, .delay_most = 40});
    for_each_sum(false, p, [&](const Case& c, Type type) {
      const Sums once = run(quick.all, c, type, random), again = run(slow.all, c, type, random);
      CHECK_MESSAGE(results(once) == results(again), c.name(), " of ", name_of(type));
      for (std::size_t r = 1; c.collective == Collective::allreduce && r < once.size(); ++r)
        CHECK_MESSAGE(once[r]->result() == once[0]->result(), c.name(), " of ", name_of(type));
      told_apart += !flaw(once).empty();   // other orders have other bits: the test can fail
    });
  }
  CHECK(told_apart > 100);
}

}  // namespace
}  // namespace paceline
