// Binomial gather: each inner rank of a binomial tree collects its subtree's units on the way up.
//
// Source   R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication
//          operations in MPICH. Int. J. High Perform. Comput. Appl. 19(1):49-66, 2005.
//          doi 10.1177/1094342005051521
// Needs    counts known everywhere: inner ranks hold others' units. Any p >= 1, any root.
// Cost     ceil(log2 p) alpha + (p-1)/p n beta, n the whole result (exact when the units are equal)
// Scratch  the units of its subtree on inner ranks: at most n/2.
// When     short units. Long ones travel up to log2 p times, though not at the root: linear.
// Order    moves data only.
//
// p = 4, root 0, units A B C D.
//                 rank 0            rank 1            rank 2            rank 3
//   start         A                 B                 C                 D
//   round 0       A  B              B                 C  D              D
//   round 1       A  B  C  D        B                 C  D              D
#include "coll/around.hpp"
#include "ir/algorithm.hpp"
#include "shapes/binomial.hpp"

namespace paceline {
namespace {

std::optional<Reason> rejects(const Problem& pb) {
  if (pb.uneven)
    return Reason{"units differ in length and only the root knows how", "linear"};
  return {};
}

// Units are counted from the root onwards, as positions in the tree are.
void build(const Problem& pb, const Knobs&, Builder& b) {
  const BinomialTree tree{pb.ranks};
  const int v = position_of(pb.rank, pb.root, pb.ranks);
  const auto rank_of = [&](int position) { return rank_at(position, pb.root, pb.ranks); };
  const Around units(b.output(), pb.root);
  const Around held = v == 0 ? units : units.scratch(b, v + 1, v + tree.size(v));
  for (int child : tree.children(v))
    b.recv(rank_of(child), held.at(child, child + tree.size(child)));
  if (v == 0) return b.copy(b.input(pb.rank), b.output(pb.rank));
  std::vector<Segment> message = held.at(v + 1, v + tree.size(v));
  message.insert(message.begin(), b.input(pb.rank));
  b.send(rank_of(tree.parent(v)), message);
}

Cost cost(const Problem& pb, const Knobs&) {
  return {.rounds = double(ceil_log2(pb.ranks)), .volume = double(pb.ranks - 1) / pb.ranks,
          .reduced = 0, .messages = pb.ranks - 1.0};
}

}  // namespace

extern const Algorithm gather_binomial{
    .collective = Collective::gather, .name = "binomial", .rejects = rejects, .build = build,
    .cost = cost};

}  // namespace paceline
