// The shapes, each property for every number of ranks to 64.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <set>

#include "shapes/binomial.hpp"
#include "shapes/circulant.hpp"
#include "shapes/circulant_blocks.hpp"
#include "shapes/double_tree.hpp"
#include "shapes/hypercube.hpp"
#include "shapes/k_nomial.hpp"
#include "shapes/multicube.hpp"
#include "shapes/post_order.hpp"

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
      int next = v + 1;   // covered by the children so far, nearest first
      for (int child : BinomialTree{p}.children(v)) {
        CHECK(child == next);
        next = std::min(p, child + (child - v));
      }
    }
}

TEST_CASE("shapes: a subtree of the binomial tree is as large as its children's and itself") {
  for (int p = 1; p <= 64; ++p)
    for (int v = 0; v < p; ++v) {
      int size = 1;
      for (int child : BinomialTree{p}.children(v)) size += BinomialTree{p}.size(child);
      CHECK(BinomialTree{p}.size(v) == size);
    }
}

TEST_CASE("shapes: near corners and whom they stand for are consecutive, and halve") {
  for (int p = 1; p <= 64; ++p) {
    const Hypercube cube{p};
    const int q = cube.dimensions();
    for (int rank = 0; rank < p; ++rank) {
      if (!cube.is_corner(rank)) continue;
      const int c = cube.corner_of(rank);
      CHECK(cube.first_near(c, q) == 0);
      CHECK(cube.behind_near(c, q) == p);
      CHECK(cube.behind_near(c, 0) == rank + 1);
      CHECK(cube.first_near(c, 0) == rank - cube.stands_for_two(rank));
      for (int d = 0; d < q; ++d) {
        const int low = std::min(c, c ^ (1 << d)), high = std::max(c, c ^ (1 << d));
        CHECK(cube.first_near(low, d) == cube.first_near(c, d + 1));
        CHECK(cube.behind_near(low, d) == cube.first_near(high, d));
        CHECK(cube.behind_near(high, d) == cube.behind_near(c, d + 1));
      }
    }
  }
}

TEST_CASE("shapes: a k-nomial tree reaches everybody once, and is binomial for radix 2") {
  for (int radix : {2, 3, 4, 7})
    for (int p = 1; p <= 64; ++p) {
      const KNomialTree tree{p, radix};
      int reached = 1;
      for (int v = 0; v < p; ++v)
        for (int child : tree.children(v)) {
          CHECK(child < p);
          CHECK(tree.parent(child) == v);
          ++reached;
        }
      CHECK(reached == p);
      for (int v = 0; v < p && radix == 2; ++v) {
        std::vector<int> children = tree.children(v);
        std::reverse(children.begin(), children.end());
        CHECK(children == BinomialTree{p}.children(v));
      }
    }
}

TEST_CASE("shapes: corners of a multicube stand for consecutive ranks, and hear each other") {
  for (int radix : {2, 3, 4, 16})
    for (int p = 1; p <= 64; ++p) {
      const Multicube cube{p, radix};
      CHECK(cube.leader(0) == 0);
      CHECK(cube.leader(cube.corners()) == p);
      CHECK(cube.most() <= 2);
      int product = 1;
      for (int size : cube.sizes()) product *= size;
      CHECK(product == cube.corners());
      for (int c = 0; c < cube.corners(); ++c) {
        CHECK(cube.leader(c + 1) - cube.leader(c) <= cube.most());
        for (int r = cube.leader(c); r < cube.leader(c + 1); ++r) CHECK(cube.corner_of(r) == c);
        for (std::size_t d = 0; d < cube.sizes().size(); ++d) {
          const std::vector<int> others = cube.others(c, d);
          CHECK(int(others.size()) == cube.sizes()[d] - 1);
          CHECK(cube.sizes()[d] <= radix);
          for (std::size_t i = 0; i < others.size(); ++i) {
            const std::vector<int> back = cube.others(cube.corner_of(others[i]), d);
            CHECK(back[others.size() - 1 - i] == cube.leader(c));
          }
        }
      }
    }
}

TEST_CASE("shapes: a multicube takes the factors of the ranks, and folds where that is less") {
  const auto sizes = [](int p, int radix) { return Multicube{p, radix}.sizes(); };
  CHECK(sizes(1, 3).empty());
  CHECK(sizes(12, 3) == std::vector{3, 2, 2});
  CHECK(sizes(12, 4) == std::vector{4, 3});
  CHECK(sizes(27, 3) == std::vector{3, 3, 3});
  CHECK(sizes(8, 4) == std::vector{4, 2});
  CHECK(sizes(7, 3) == std::vector{2, 2});   // 2 + 2 messages; on 6 they were 3 + 2
  CHECK(sizes(24, 2) == std::vector{2, 2, 2, 2});
}

TEST_CASE("shapes: children of a post-order tree stand before their parent, in rank order") {
  for (int first : {0, 5})
    for (int n = 1; n <= 64; ++n) {
      const RankRange tree{first, first + n - 1};
      int roots = 0, reached = 0, highest = 0;
      std::vector<int> lowest(static_cast<std::size_t>(first + n));   // rank of the subtree
      for (int rank = tree.first; rank <= tree.last; ++rank) {
        const PostOrderNode node = post_order_node(tree, rank);
        roots += node.parent < 0;
        highest = std::max(highest, node.depth);
        CHECK((node.parent < 0) == (rank == tree.last));
        int next = rank;   // subtrees lie before the rank without a gap
        for (auto child = node.children.rbegin(); child != node.children.rend(); ++child) {
          CHECK(post_order_node(tree, *child).parent == rank);
          CHECK(post_order_node(tree, *child).depth == node.depth + 1);
          CHECK(*child == next - 1);
          next = lowest[std::size_t(*child)];
          ++reached;
        }
        lowest[std::size_t(rank)] = next;
      }
      CHECK(roots == 1);
      CHECK(reached == n - 1);
      CHECK(lowest[std::size_t(tree.last)] == first);
      CHECK(highest == post_order_height(tree));
      CHECK(highest <= ceil_log2(n + 1));
    }
}

TEST_CASE("shapes: circulant rounds ship every offset but the own once, in the fewest rounds") {
  for (int radix : {2, 3, 4, 5, 8})
    for (int p = 1; p <= 300; ++p) {
      int held = p, messages = 0;
      std::size_t fewest = 0;
      for (long reached = 1; reached < p; reached *= radix) ++fewest;
      const std::vector<CirculantRound> rounds = circulant_rounds(p, radix);
      CHECK(rounds.size() == fewest);
      for (const CirculantRound& round : rounds) {
        CHECK(round.held == held);
        int next = round.kept;   // the kept part, then the messages without a gap
        for (int d : round.distances()) {
          CHECK(d == next);
          CHECK(round.length(d) <= round.kept);
          next += round.length(d);
        }
        CHECK(next == held);
        CHECK(round.distances().size() < std::size_t(radix));
        messages += int(round.distances().size());
        held = round.kept;
      }
      CHECK(held == 1);
      CHECK(messages == circulant_messages(p, radix));
    }
}

// The four conditions of Traeff's schedules, from their text and not from the search.
TEST_CASE("shapes: circulant blocks keep the four conditions for every p to 2048") {
  int wrong = 0;   // one CHECK for each would be millions
  for (int p = 2; p <= 2048; ++p) {
    const std::vector<int> s = circulant_skips(p);
    const int q = int(s.size()) - 1;
    if (s[0] != 1 || s[std::size_t(q)] != p || q != ceil_log2(p)) ++wrong;
    std::vector<std::vector<int>> receives;
    for (int r = 0; r < p; ++r) receives.push_back(circulant_receives(s, r));
    for (int r = 0; r < p; ++r) {
      const std::vector<int>& own = receives[std::size_t(r)];
      if (int(own.size()) != q) ++wrong;
      int seen = 0, fresh = -1;   // all of -q .. -1 but one, instead of which its successor by q
      for (int e : own) {
        seen |= 1 << (e < 0 ? e + q : e);
        if (e >= 0) fresh = fresh < 0 ? e : q;
      }
      if (r > 0 && (seen != (1 << q) - 1 || fresh < 0 || fresh >= q)) ++wrong;
      for (int k = 0; k < q; ++k) {
        const int e = receives[std::size_t((r + s[std::size_t(k)]) % p)][std::size_t(k)];
        const bool known = std::find(own.begin(), own.begin() + k, e) != own.begin() + k;
        if (r == 0 ? e != k : e != fresh - q && !known) ++wrong;
      }
    }
  }
  CHECK(wrong == 0);
  for (int p : {2, 3, 33, 129, 1000})   // and each end receives what the other sends
    for (int r = 0; r < p; ++r) {
      const std::vector<int> s = circulant_skips(p), sends = circulant_sends(s, r);
      for (std::size_t k = 0; k < sends.size(); ++k)
        CHECK(sends[k] == circulant_receives(s, (r + s[k]) % p)[k]);
    }
}

TEST_CASE("shapes: blocks go round by round, in as few as can be, and are sent once known") {
  for (int p = 2; p <= 40; ++p)
    for (int blocks : {1, 2, 3, 5, 8, 13}) {
      std::vector<std::vector<BlockRound>> rounds;
      for (int v = 0; v < p; ++v) rounds.push_back(block_rounds({p, blocks}, v));
      std::vector<std::set<int>> known(static_cast<std::size_t>(p));
      for (int i = 0; i < blocks; ++i) known[0].insert(i);
      for (std::size_t i = 0; i < rounds[0].size(); ++i) {
        std::vector<std::set<int>> next = known;
        for (std::size_t v = 0; v < std::size_t(p); ++v) {
          const BlockRound& mine = rounds[v][i];
          const BlockRound& theirs = rounds[std::size_t(mine.to)][i];
          CHECK(theirs.from == int(v));
          CHECK(theirs.receives == mine.sends);
          if (mine.sends < 0) continue;
          CHECK(known[v].count(mine.sends) == 1);
          CHECK(next[std::size_t(mine.to)].insert(mine.sends).second);   // never twice
        }
        known = next;
      }
      CHECK(int(rounds[0].size()) == blocks - 1 + ceil_log2(p));
      for (const std::set<int>& all : known) CHECK(int(all.size()) == blocks);
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

TEST_CASE("shapes: two binary trees span all ranks, and at most one rank is inner in both") {
  for (int p = 1; p <= 130; ++p) {
    const DoubleTree trees{p};
    std::vector<int> inner(std::size_t(p), 0);
    for (int tree : {0, 1}) {
      int roots = 0, deepest = 0, edges = 0;
      for (int rank = 0; rank < p; ++rank) {
        const DoubleTree::Node node = trees.node(tree, rank);
        roots += node.parent < 0;
        CHECK((node.parent < 0) == (node.depth == 0));
        deepest = std::max(deepest, node.depth);
        CHECK(node.children.size() <= 2);
        CHECK(node.before <= node.children.size());
        inner[std::size_t(rank)] += !node.children.empty();
        for (int child : node.children) {
          ++edges;
          CHECK(trees.node(tree, child).parent == rank);
          CHECK(trees.node(tree, child).depth == node.depth + 1);
        }
      }
      CHECK(roots == 1);
      CHECK(edges == p - 1);   // with the parents and depths above: every rank once
      CHECK(deepest == trees.height());
      CHECK(deepest == ceil_log2(p));
    }
    CHECK(std::count(inner.begin(), inner.end(), 2) <= (p == 2 ? 2 : 1));
  }
}

// A sum in the first tree so joins its operands in rank order.
TEST_CASE("shapes: in the first tree children lie on both sides of their parent, in order") {
  for (int p = 1; p <= 64; ++p)
    for (int rank = 0; rank < p; ++rank) {
      const DoubleTree::Node node = DoubleTree{p}.node(0, rank);
      for (std::size_t i = 0; i < node.children.size(); ++i)
        CHECK((node.children[i] < rank) == (i < node.before));
    }
}
