// The shapes, each property for every number of ranks to 64.
#include <doctest/doctest.h>

#include <algorithm>

#include "shapes/binomial.hpp"
#include "shapes/hypercube.hpp"

using namespace paceline;

TEST_CASE("shapes: ceil_log2 is the smallest power that suffices") {
  for (int n = 1; n <= 64; ++n) {
    const int q = ceil_log2(n);
    CHECK((1 << q) >= n);
    CHECK((q == 0 || (1 << (q - 1)) < n));
  }
}

TEST_CASE("shapes: positions and ranks are each other's inverse, the root is position 0") {
  for (int p = 1; p <= 64; ++p)
    for (int root = 0; root < p; ++root) {
      CHECK(position_of(root, root, p) == 0);
      for (int rank = 0; rank < p; ++rank)
        CHECK(rank_at(position_of(rank, root, p), root, p) == rank);
    }
}

TEST_CASE("shapes: a binomial tree reaches everybody once, in ceil(log2 p) rounds") {
  for (int p = 1; p <= 64; ++p) {
    const BinomialTree tree{p};
    std::vector<int> round(static_cast<std::size_t>(p), -1);   // in which a position is reached
    round[0] = 0;
    for (int v = 0; v < p; ++v) {   // a parent has the smaller number
      std::vector<int> children = tree.children(v);
      int at = round[std::size_t(v)];
      CHECK(at >= 0);
      for (auto child = children.rbegin(); child != children.rend(); ++child) {
        CHECK(*child < p);
        CHECK(tree.parent(*child) == v);
        CHECK(round[std::size_t(*child)] == -1);
        round[std::size_t(*child)] = ++at;
      }
      CHECK(at <= ceil_log2(p));
    }
  }
}

TEST_CASE("shapes: a subtree of the binomial tree is an interval, so sums stay in rank order") {
  for (int p = 1; p <= 64; ++p)
    for (int v = 0; v < p; ++v) {
      int next = v + 1;   // what the children cover so far, nearest first
      for (int child : BinomialTree{p}.children(v)) {
        CHECK(child == next);
        next = std::min(p, child + (child - v));
      }
    }
}

TEST_CASE("shapes: corners of the hypercube are a power of two, and all ranks are stood for") {
  for (int p = 1; p <= 64; ++p) {
    const Hypercube cube{p};
    const int corners = 1 << cube.dimensions();
    CHECK(corners <= p);
    CHECK(2 * corners > p);
    CHECK(cube.extra() == p - corners);
    int found = 0, stood_for = 0;
    for (int rank = 0; rank < p; ++rank) {
      if (!cube.is_corner(rank)) {
        CHECK(cube.stands_for_two(rank + 1));
        continue;
      }
      CHECK(cube.corner_of(rank) == found++);   // in rank order
      CHECK(cube.rank_of(cube.corner_of(rank)) == rank);
      stood_for += cube.stands_for_two(rank) ? 2 : 1;
    }
    CHECK(found == corners);
    CHECK(stood_for == p);
  }
}

TEST_CASE("shapes: partners are corners, mutual, and on the other side of their dimension") {
  for (int p = 1; p <= 64; ++p) {
    const Hypercube cube{p};
    for (int rank = 0; rank < p; ++rank)
      for (int d = 0; cube.is_corner(rank) && d < cube.dimensions(); ++d) {
        const int partner = cube.partner(rank, d);
        CHECK(cube.is_corner(partner));
        CHECK(cube.partner(partner, d) == rank);
        CHECK((cube.corner_of(partner) ^ cube.corner_of(rank)) == 1 << d);
      }
  }
}
