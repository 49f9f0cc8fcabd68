// Gathering reduce: all vectors travel up a binomial tree as they are, and the root adds them up.
//
// Source   R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication
//          operations in MPICH. Int. J. High Perform. Comput. Appl. 19(1):49-66, 2005.
//          doi 10.1177/1094342005051521. Its binomial gather, with the root's sum after it.
// Needs    nothing: any p >= 1, any n >= 0, any root, operands stay in rank order.
// Cost     ceil(log2 p) alpha + (p-1) n (beta + gamma) (beyond 16 ranks a part of gamma is hidden)
// Scratch  (p-1) n elements at the root: all vectors but the own; those of its subtree on an inner
//          rank; at the root beyond 16 ranks a sixteenth more.
// When     a few hundred bytes at most, whose operands stay in order: fewest rounds for any root.
// Order    rank order from left to right, whatever the root; beyond 16 ranks first in equal groups
//          of at most 16, unless the order is to be canonical: same bits in every run.
//
// p = 4, root 0; a digit is a contribution, * is final. Received data is in scratch.
//                 rank 0      rank 1    rank 2    rank 3
//   start         0           1         2         3
//   round 0       0 1                   2 3
//   round 1       0 1 2 3
//   sum           *
#include <algorithm>

#include "coll/sums.hpp"
#include "ir/algorithm.hpp"
#include "shapes/binomial.hpp"

namespace paceline {
namespace {

// Positions count from the root; vector i is that of the position i behind this one.
void build(const Problem& pb, const Knobs&, Builder& b) {
  const BinomialTree tree{pb.ranks};
  const int v = position_of(pb.rank, pb.root, pb.ranks);
  std::vector<Segment> vectors(static_cast<std::size_t>(tree.size(v)), b.input());
  for (int child : tree.children(v)) {
    std::vector<Segment> came;
    for (int i = 0; i < tree.size(child); ++i) came.push_back(b.scratch(b.input()));
    b.recv(rank_at(child, pb.root, pb.ranks), came);
    std::copy(came.begin(), came.end(), vectors.begin() + (child - v));
  }
  if (v > 0) return b.send(rank_at(tree.parent(v), pb.root, pb.ranks), vectors);
  std::rotate(vectors.begin(), vectors.end() - pb.root, vectors.end());   // by rank
  if (pb.ranks > 1) sum_in_groups(b, vectors, b.output());
  else b.copy(b.input(), b.output());
  b.finish(b.output());
}

Cost cost(const Problem& pb, const Knobs&) {
  return {.rounds = double(ceil_log2(pb.ranks)), .volume = pb.ranks - 1.0,
          .reduced = pb.ranks - 1.0, .messages = pb.ranks - 1.0};
}

}  // namespace

extern const Algorithm reduce_gather{
    .collective = Collective::reduce, .name = "gather", .build = build, .cost = cost,
    .bits = Bits::by_rank};

}  // namespace paceline
