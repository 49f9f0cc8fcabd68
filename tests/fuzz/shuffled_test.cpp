// numbers=stable: bits never depend on who comes when. A sum is made 150 times or more, its ranks
// coming in an order and at times that are drawn anew, by every algorithm that may be asked for or
// chosen there; and the test sees it where bits do follow arrival.
#include <doctest/doctest.h>

#include <numeric>

#include "coll/registry.hpp"
#include "fuzz/loop.hpp"
#include "tune/choose.hpp"
#include "world/worlds.hpp"

namespace paceline::fuzz {
namespace {

constexpr int kRanks = 5;

using NodeOf = std::vector<int>;

// 3 + 2 in a row and scattered, 1 + 3 + 2, and equally many in turn.
const NodeOf kNodes[] = {{0, 0, 0, 1, 1}, {0, 1, 0, 0, 1}, {0, 1, 1, 2, 1, 2}, {0, 1, 0, 1, 0, 1}};

// So many sums of the same numbers, which round and cancel; each must give the bits of the first.
Program repeated(Collective collective, const std::string& algorithm, int calls, Numbers numbers,
                 const NodeOf& nodes = {}) {
  const int ranks = nodes.empty() ? kRanks : static_cast<int>(nodes.size());
  Program program{.seed = 17, .ranks = ranks, .nodes = nodes, .numbers = numbers};
  program.groups = {std::vector<int>(std::size_t(ranks))};
  std::iota(program.groups[0].begin(), program.groups[0].end(), 0);
  Invocation call;
  call.collective = collective;
  call.algorithm = algorithm;
  call.type = Type::f32;
  call.values = Values::wild;
  call.count = 7;
  call.root = has_root(collective) ? 3 : 0;
  call.data = 23;
  if (!algorithm.empty())
    call.shared = find_algorithm(collective, algorithm).uses(Access::symmetric);
  for (int i = 0; i < calls; ++i) {
    program.calls.push_back(call);
    program.actions.push_back({Action::Kind::begin, i});
    call.same_as = 0;
  }
  return program;
}

Faults shuffled(bool near) {
  return {.seed = 29, .delay_s = near ? 0 : 5e-5, .late_percent = 3, .stages = near};
}

// Empty, or what is wrong with it.
std::string flaw_of(Collective collective, const std::string& algorithm, bool near,
                    Numbers numbers = Numbers::stable) {
  const int calls = test::by_length(100, 150, 1000);
  return play_loop(repeated(collective, algorithm, calls, numbers), shuffled(near)).trouble();
}

bool serves_stable(const Algorithm& a) {
  Problem problem{.collective = a.collective, .ranks = kRanks, .root = has_root(a.collective) * 3};
  problem.one_node = a.is_load_store();
  problem.symmetric = a.uses(Access::symmetric);
  return has_op(a.collective) && !why_not(a, problem);
}

TEST_CASE("stable: arrivals shuffled many times, and always the same bits") {
  int tried = 0;
  for (const Algorithm* a : registry()) {
    if (!serves_stable(*a)) continue;
    CHECK(!a->claims());
    const std::string bad = flaw_of(a->collective, a->name, a->is_load_store());
    CHECK_MESSAGE(bad.empty(), a->name, ": ", bad);
    ++tried;
  }
  CHECK(tried > 30);
  for (const Collective c :
       {Collective::allreduce, Collective::reduce, Collective::reduce_scatter})
    for (const bool near : {false, true}) {
      const std::string bad = flaw_of(c, "", near);
      CHECK_MESSAGE(bad.empty(), "chosen ", near ? "near: " : "far: ", bad);
    }
}

// Staging buffers inside nodes, messages that overtake each other between them.
std::string flaw_on_nodes(const Program& program) {
  Faults faults = shuffled(true);
  faults.delay_s = 5e-5;
  return play_loop(program, faults).trouble();
}

TEST_CASE("stable: the same on nodes of several ranks, unequally many and scattered") {
  int tried = 0;
  for (const NodeOf& nodes : kNodes) {
    const int calls = test::by_length(100, 150, 1000);
    for (const Algorithm* a : registry()) {
      Problem problem{.collective = a->collective, .ranks = static_cast<int>(nodes.size()),
                      .nodes = nodes, .node_staging = true};
      if (!a->by_nodes() || !has_op(a->collective) || why_not(*a, problem)) continue;
      const std::string bad =
          flaw_on_nodes(repeated(a->collective, a->name, calls, Numbers::stable, nodes));
      CHECK_MESSAGE(bad.empty(), a->name, ": ", bad);
      ++tried;
    }
    for (const Collective c :
         {Collective::allreduce, Collective::reduce, Collective::reduce_scatter}) {
      const std::string bad = flaw_on_nodes(repeated(c, "", calls, Numbers::stable, nodes));
      CHECK_MESSAGE(bad.empty(), "chosen: ", bad);
    }
  }
  CHECK(tried >= 4 * 6);
}

// What the test above would see if a node's ranks, or the nodes, were added in another order.
TEST_CASE("mutants: another order of the sums on nodes is noticed") {
  for (const NodeOf& nodes : kNodes) {
    Program program = repeated(Collective::allreduce, "hierarchical", 2, Numbers::stable, nodes);
    program.calls[1].algorithm = "direct";
    const std::string flaw = flaw_on_nodes(program);
    CHECK_MESSAGE(flaw.find("other bits than call 0") != std::string::npos, flaw);
  }
}

TEST_CASE("mutants: bits that follow arrival are noticed") {
  int noticed = 0;
  for (const Algorithm* a : registry())
    if (a->claims()) {
      const std::string flaw =
          a->by_nodes() ? flaw_on_nodes(repeated(a->collective, a->name,
                                               test::by_length(100, 300, 1000), Numbers::fast,
                                               {0, 0, 0, 0, 1, 1}))
                      : flaw_of(a->collective, a->name, true, Numbers::fast);
      CHECK_MESSAGE(flaw.find("other bits than call 0") != std::string::npos, a->name, ": ", flaw);
      ++noticed;
    }
  CHECK(noticed == 4);
}

}  // namespace
}  // namespace paceline::fuzz
