// Binomial scatter: each inner rank of a binomial tree hands its children their subtrees' units.
//
// Source   R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication
//          operations in MPICH. Int. J. High Perform. Comput. Appl. 19(1):49-66, 2005.
//          doi 10.1177/1094342005051521
// Needs    counts known everywhere: inner ranks hold others' units. Any p >= 1, any root.
// Cost     ceil(log2 p) alpha + (p-1)/p n beta, n the whole message (exact when the units are
//          equal)
// Scratch  the units of its subtree on inner ranks: at most n/2.
// When     short units. Long ones travel up to log2 p times, though not at the root: linear.
// Order    moves data only.
//
// p = 4, root 0, units A B C D.
//                 rank 0            rank 1            rank 2            rank 3
//   start         A  B  C  D
//   round 0       A  B  C  D                          C  D
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
  const Around units(b.input(), pb.root);
  const Around held = v == 0 ? units : units.scratch(b, v + 1, v + tree.size(v));
  if (v > 0) {
    std::vector<Segment> message = held.at(v + 1, v + tree.size(v));
    message.insert(message.begin(), b.output(pb.rank));
    b.recv(rank_of(tree.parent(v)), message);
  }
  const std::vector<int> children = tree.children(v);
  for (auto child = children.rbegin(); child != children.rend(); ++child)
    b.send(rank_of(*child), held.at(*child, *child + tree.size(*child)));
  if (v == 0) b.copy(b.input(pb.rank), b.output(pb.rank));
}

Cost cost(const Problem& pb, const Knobs&) {
  return {.rounds = double(ceil_log2(pb.ranks)), .volume = double(pb.ranks - 1) / pb.ranks,
          .reduced = 0, .messages = pb.ranks - 1.0};
}

}  // namespace

extern const Algorithm scatter_binomial{
    .collective = Collective::scatter, .name = "binomial", .rejects = rejects, .build = build,
    .cost = cost};

}  // namespace paceline
