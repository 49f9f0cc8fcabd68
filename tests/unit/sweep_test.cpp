// The sweep of `paceline verify`: it covers what it says, and nothing twice.
#include "verify/sweep.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <tuple>

using namespace paceline;

namespace {

auto key(const Shape& s) {
  return std::tuple(s.ranks, s.root, s.in_place, s.fused, s.segments, s.window, s.ordered);
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
    CHECK(any(shapes, [](const Shape& s) { return s.fused && s.segments == 3 && s.window == 2; }));
    CHECK(any(shapes, [](const Shape& s) { return s.ordered; }) == has_op(collective));
    CHECK(any(shapes, [](const Shape& s) { return s.in_place; }) ==
          (collective != Collective::broadcast && collective != Collective::barrier));
  }
}
