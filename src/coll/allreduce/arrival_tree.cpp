// Arrival tree allreduce: a fixed tree of sums, each formed by whichever of its ranks comes last.
//
// Source   ours (docs/design/0044-arrival-in-the-node.md); after the combining tree of P.-C. Yew,
//          N.-F. Tzeng, D. H. Lawrie: Distributing hot-spot addressing in large-scale
//          multiprocessors. IEEE Trans. Computers C-36(4):388-395, 1987. Here who came when tells
//          the ranks apart as they enter, and no word for each node of the tree is needed.
// Needs    ranks of one node. Any p >= 1, any n >= 0; operands stay in rank order.
// Cost     ceil(log2 p) + 1 signals one after the other; n copied in by ranks that add nothing,
//          (p-1) n gamma by all together, n copied out by all but the last. When the last rank
//          has come, ceil(log2 p) sums and the copies out are left.
// Scratch  n
// When     short and medium messages on one node, where ranks come at different times and sums must
//          not depend on when.
// Order    the canonical tree: aligned powers of two, rank order. Same bits on every rank and in
//          every run, whoever comes when.
//
// p = 4; they come in the order 1, 2, 3, 0. A digit is a contribution, * is final.
//              rank 1            rank 2            rank 3            rank 0
//              buffer  stage     buffer  stage     buffer  stage     buffer  stage
//   start      A1                A2                A3                A0
//   show       A1      A1        A2      A2        A3                A0      (late)
//   add        A1      A1        A2      A2        A3      A23       A0
//   add        A1      A1        A2      A2        A3      A23       A0      A01
//   complete   A1      A1        A2      A2        A3      A23       A*      A*
//   copy out   A*      A1        A*      A2        A*      A23       A*      A*
#include <algorithm>

#include "coll/leader.hpp"
#include "ir/algorithm.hpp"
#include "ir/compose.hpp"
#include "shapes/binomial.hpp"
#include "shapes/canonical_tree.hpp"

namespace paceline {
namespace {

// Who comes last of these ranks, of whom there is one.
int last_of(const std::vector<int>& order, const Subtree& tree) {
  const auto is_there = [&](int rank) { return tree.first <= rank && rank < tree.second; };
  return *std::find_if(order.rbegin(), order.rend(), is_there);
}

bool is_before(const std::vector<int>& order, const Subtree& tree, int rank) {
  const auto own = std::find(order.begin(), order.end(), rank);
  return std::find(order.begin(), own, last_of(order, tree)) != own;
}

void build(const Problem& pb, const Knobs&, Builder& b) {
  const std::vector<int> order = pb.order.empty() ? all_ranks(pb.ranks) : pb.order;
  const std::vector<Subtree> beside = subtrees_beside(pb.rank, pb.ranks);
  const Segment slot = b.scratch(b.output());
  Segment mine = b.input();
  for (const Subtree& tree : beside) {
    const int last = last_of(order, tree);
    if (!is_before(order, tree, pb.rank)) {   // it will add what this rank has
      b.copy(mine, slot);
      b.signal(last);
      return take_sum(b, order.back(), slot);
    }
    const Segment target = tree == beside.back() ? b.output() : slot;
    const Segment theirs = b.of_peer(last, slot);
    b.wait(last);
    if (last < pb.rank) b.reduce({theirs, mine}, target);
    else b.reduce({mine, theirs}, target);
    mine = target;
  }
  if (pb.ranks == 1) b.copy(b.input(), b.output());
  show_sum(b, slot);
}

Cost cost(const Problem& pb, const Knobs&) {
  const double levels = ceil_log2(pb.ranks);
  return {.rounds = pb.ranks > 1 ? levels + 1 : 0, .volume = 0, .reduced = levels};
}

}  // namespace

extern const Algorithm allreduce_arrival_tree{
    .collective = Collective::allreduce, .name = "arrival_tree", .cuts = one_block, .build = build,
    .cost = cost, .access = Access::staging, .claimed = true, .by_subtree = true};

}  // namespace paceline
