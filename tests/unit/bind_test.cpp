// Positions and ranks: the order is a permutation, and a bound schedule differs only in names.
#include "ir/bind.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "coll/algorithms.hpp"
#include "coll/registry.hpp"

using namespace paceline;

namespace {

Problem problem_of(Collective collective, std::vector<int> nodes, int rank = 0, int root = 0) {
  Problem p;
  p.collective = collective;
  p.ranks = static_cast<int>(nodes.size());
  p.rank = rank;
  p.root = root;
  p.nodes = std::move(nodes);
  return p;
}

}  // namespace

TEST_CASE("bind: ranks stand node by node, in rank order inside a node") {
  const Order order(problem_of(Collective::broadcast, {0, 1, 2, 0, 1, 2}));
  const std::vector<int> wanted{0, 3, 1, 4, 2, 5};
  const Order unlike(problem_of(Collective::broadcast, {0, 1, 1, 0, 2, 1}));   // 2 + 3 + 1
  const std::vector<int> there{0, 3, 1, 2, 5, 4};
  for (int at = 0; at < 6; ++at) CHECK(unlike.rank_at(at) == there[std::size_t(at)]);
  for (int at = 0; at < 6; ++at) {
    CHECK(order.rank_at(at) == wanted[std::size_t(at)]);
    CHECK(order.rank_at(at - 6) == order.rank_at(at));   // around
    CHECK(order.position_of(order.rank_at(at)) == at);
  }
  Problem without = problem_of(Collective::broadcast, {0, 1, 0, 1});
  without.nodes.clear();
  for (int rank = 0; rank < 4; ++rank) CHECK(Order(without).position_of(rank) == rank);
}

TEST_CASE("bind: rank and root become positions, and those of a node neighbours") {
  const Problem p = problem_of(Collective::broadcast, {0, 1, 0, 1}, 2, 1);
  const Problem at = at_position(p, Order(p));
  CHECK(at.rank == 1);
  CHECK(at.root == 2);
  CHECK(at.nodes == std::vector{0, 0, 1, 1});
  CHECK(!is_bound(broadcast_chain, at));   // as they are
}

TEST_CASE("bind: who is bound, and who is not") {
  const std::vector<int> in_turn{0, 1, 0, 1};
  for (const Algorithm* a : registry()) {
    CAPTURE(a->name);
    Problem p = problem_of(a->collective, in_turn);
    const bool one_unit = units_of(p) == 1;
    CHECK(is_bound(*a, p) == (one_unit && !a->by_nodes() && !a->is_load_store()));
    p.commutative = false;   // operands stay in rank order
    CHECK((is_bound(*a, p) && has_op(a->collective)) == false);
    p.nodes = {0, 0, 1, 1};
    p.commutative = true;
    CHECK(!is_bound(*a, p));
    p.nodes.clear();
    CHECK(!is_bound(*a, p));
  }
}

TEST_CASE("bind: a schedule keeps everything but the names of peers") {
  for (const Algorithm* a : {&allreduce_ring, &broadcast_binomial, &reduce_chain}) {
    CAPTURE(a->name);
    for (int rank = 0; rank < 6; ++rank) {
      const Problem p = problem_of(a->collective, {0, 1, 2, 0, 1, 2}, rank, 0);
      const Order order(p);
      const Schedule bound = build(*a, p), at = build(*a, at_position(p, order));
      REQUIRE(bound.steps.size() == at.steps.size());
      for (std::size_t i = 0; i < bound.steps.size(); ++i) {
        const Step &mine = bound.steps[i], &its = at.steps[i];
        const bool talks = its.kind == Kind::send || its.kind == Kind::recv;
        CHECK(mine.kind == its.kind);
        CHECK(mine.seq == its.seq);
        CHECK(mine.peer == (talks ? order.rank_at(its.peer) : its.peer));
      }
      CHECK(bound.segments == at.segments);
      CHECK(edges_of(bound) == edges_of(at));
      CHECK(bound.problem == p);
    }
  }
}
