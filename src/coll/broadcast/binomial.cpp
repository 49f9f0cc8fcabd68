// Binomial broadcast: the number of ranks that know the message doubles every round.
//
// Source   R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication
//          operations in MPICH. Int. J. High Perform. Comput. Appl. 19(1):49-66, 2005.
//          doi 10.1177/1094342005051521
// Needs    nothing: any p >= 1, any n >= 0, any root.
// Cost     ceil(log2 p) (alpha + n beta)
// Scratch  none
// When     short messages. Long ones keep the root sending log2 p times: a pipelined chain wins.
// Order    moves data only.
//
// p = 4, root 0; * knows the message. The farthest child is served first.
//                 rank 0    rank 1    rank 2    rank 3
//   start         *
//   round 0       *                   *
//   round 1       *         *         *         *
#include "ir/algorithm.hpp"
#include "shapes/binomial.hpp"

namespace paceline {
namespace {

void build(const Problem& pb, const Knobs&, Builder& b) {
  const BinomialTree tree{pb.ranks};
  const int v = position_of(pb.rank, pb.root, pb.ranks);
  if (v != 0) b.recv(rank_at(tree.parent(v), pb.root, pb.ranks), {b.output()});
  const std::vector<int> children = tree.children(v);
  for (auto child = children.rbegin(); child != children.rend(); ++child)
    b.send(rank_at(*child, pb.root, pb.ranks), {b.output()});
}

Cost cost(const Problem& pb, const Knobs&) {
  const double q = ceil_log2(pb.ranks);
  return {.rounds = q, .volume = q, .reduced = 0, .messages = pb.ranks - 1.0};
}

}  // namespace

extern const Algorithm broadcast_binomial{
    .collective = Collective::broadcast, .name = "binomial", .build = build, .cost = cost};

}  // namespace paceline
