// The sweep of `paceline verify`: it has every shape that it promises, and none twice.
#include "verify/sweep.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <tuple>

#include "coll/registry.hpp"

using namespace paceline;

namespace {

auto key(const Shape& s) {
  return std::tuple(s.ranks, s.root, s.in_place, s.fused, s.cut.segments, s.cut.window,
                    s.cut.whole_tail, s.ordered, s.canonical, s.uneven, s.group, s.scattered,
                    s.cut.knobs.radix, s.cut.knobs.blocks, s.late, s.nodes, s.no_staging);
}

template <class Condition>
bool any(const std::vector<Shape>& shapes, Condition&& condition) {
  return std::any_of(shapes.begin(), shapes.end(), condition);
}

}  // namespace

TEST_CASE("sweep: every world once, the small ones first, all of them lawful") {
  for (int i = 0; i < kCollectives; ++i) {
    const Collective collective{static_cast<std::uint8_t>(i)};
    CAPTURE(name_of(collective));
    const std::vector<Shape> shapes = sweep(collective, 7);
    std::set<decltype(key(Shape{}))> seen;
    for (const Shape& shape : shapes) {
      CHECK(seen.insert(key(shape)).second);
      CHECK(shape.collective == collective);
      CHECK(shape.root < shape.ranks);
    }
    CHECK(std::is_sorted(shapes.begin(), shapes.end(),
                         [](const Shape& a, const Shape& b) { return a.ranks < b.ranks; }));
    CHECK(shapes.front().ranks == 1);
    CHECK(shapes.back().ranks == 7);
  }
}

TEST_CASE("sweep: what makes a difference for a collective is varied, and nothing else") {
  for (int i = 0; i < kCollectives; ++i) {
    const Collective collective{static_cast<std::uint8_t>(i)};
    CAPTURE(name_of(collective));
    const std::vector<Shape> shapes = sweep(collective, 5);
    for (int root : {0, 1, 4})
      CHECK(any(shapes, [&](const Shape& s) { return s.ranks == 5 && s.root == root; }) ==
            (root == 0 || has_root(collective)));
    CHECK(any(shapes, [](const Shape& s) { return s.fused; }));
    CHECK(any(shapes, [](const Shape& s) { return s.fused && s.cut == Cut{3, 2}; }));
    CHECK(any(shapes, [](const Shape& s) { return s.ordered; }) == has_op(collective));
    CHECK(any(shapes, [](const Shape& s) { return s.uneven && s.in_place; }) ==
          (collective == Collective::alltoall || collective == Collective::gather ||
           collective == Collective::scatter));
    CHECK(any(shapes, [](const Shape& s) { return s.in_place; }) ==
          (collective != Collective::broadcast && collective != Collective::barrier));
  }
}

TEST_CASE("sweep: nodes of every size, neighbours and not, for algorithms that know them") {
  for (const Algorithm* a : registry()) {
    CAPTURE(a->name);
    const std::vector<Shape> shapes = sweep(*a, 6);
    const auto has = [&](int ranks, int group, bool scattered) {
      return any(shapes, [&](const Shape& s) {
        return s.ranks == ranks && s.group == group && s.scattered == scattered;
      });
    };
    CHECK(has(6, 0, false));
    const bool knows = a->cost({a->collective, 6}, {}).in_node_order;
    for (int group : {1, 2, 3}) CHECK(has(6, group, false) == knows);
    // Schedules bound node by node are tried in shapes where that makes a difference.
    const bool bound = !a->is_load_store() && !a->by_nodes() && units_of({a->collective, 6}) == 1;
    for (int group : {2, 3}) CHECK(has(6, group, true) == (knows || bound));
    const auto unlike = [](const Shape& s) {
      const auto on_first = std::count(s.nodes.begin(), s.nodes.end(), 0);
      return !s.nodes.empty() && 2 * std::size_t(on_first) != s.nodes.size();
    };
    CHECK(any(shapes, unlike) == (knows || a->by_nodes() || bound));
    CHECK(any(shapes, [](const Shape& s) { return s.no_staging; }) ==
          a->by_nodes());
    CHECK(!has(6, 4, false));
    CHECK(!has(6, 6, false));
    CHECK(!has(6, 0, true));
  }
}

TEST_CASE("sweep: every corner of an algorithm's knobs, in small worlds and once") {
  for (const Algorithm* a : registry()) {
    CAPTURE(a->name);
    const std::vector<Shape> shapes = sweep(*a, kKnobRanks + 1);
    std::set<decltype(key(Shape{}))> seen;
    for (const Shape& shape : shapes)
      CHECK_MESSAGE(seen.insert(key(shape)).second, describe(*a, shape));
    const std::vector<Knobs> corners = knob_corners(*a);
    CHECK(corners.empty() == !(a->takes.radix || a->takes.blocks));
    for (const Knobs& knobs : corners)
      for (int ranks = 1; ranks <= kKnobRanks + 1; ++ranks)
        for (bool fused : {false, true})
          CHECK(any(shapes, [&](const Shape& s) {
                  return s.ranks == ranks && s.cut.knobs == knobs && s.fused == fused;
                }) == (ranks <= kKnobRanks));
  }
}
