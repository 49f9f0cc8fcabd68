// Binomial reduce: a binomial broadcast run backwards, adding on the way up.
//
// Source   R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication
//          operations in MPICH. Int. J. High Perform. Comput. Appl. 19(1):49-66, 2005.
//          doi 10.1177/1094342005051521
// Needs    commutative op unless the root is rank 0. Any p >= 1, any n >= 0.
// Cost     ceil(log2 p) (alpha + n beta + n gamma)
// Scratch  at most 3 n elements on inner ranks, 2 n at the root.
// When     short messages.
// Order    from the root upwards in aligned blocks of powers of two: same bits in every run.
//
// p = 4, root 0; a digit is a contribution, * is final.
//                 rank 0    rank 1    rank 2    rank 3
//   start         0         1         2         3
//   round 0       01                  23
//   round 1       *
#include "coll/rejects.hpp"
#include "ir/algorithm.hpp"
#include "shapes/binomial.hpp"

namespace paceline {
namespace {

std::optional<Reason> rejects(const Problem& pb) {
  return unless_root_may_begin(pb);
}

void build(const Problem& pb, const Knobs&, Builder& b) {
  const BinomialTree tree{pb.ranks};
  const int v = position_of(pb.rank, pb.root, pb.ranks);
  const std::vector<int> children = tree.children(v);
  const bool root = v == 0;
  Segment sum = b.input();
  if (!children.empty()) {
    const Segment target = root ? b.output() : b.scratch(b.input());
    const Segment spare[2] = {b.scratch(b.input()), b.scratch(b.input())};
    for (std::size_t k = 0; k < children.size(); ++k) {
      b.recv(rank_at(children[k], pb.root, pb.ranks), {spare[k % 2]});
      b.reduce({sum, spare[k % 2]}, target);
      sum = target;
    }
  }
  if (!root) return b.send(rank_at(tree.parent(v), pb.root, pb.ranks), {sum});
  b.copy(sum, b.output());
  b.finish(b.output());
}

Cost cost(const Problem& pb, const Knobs&) {
  const double q = ceil_log2(pb.ranks);
  return {.rounds = q, .volume = q, .reduced = q, .messages = pb.ranks - 1.0};
}

}  // namespace

extern const Algorithm reduce_binomial{
    .collective = Collective::reduce, .name = "binomial", .rejects = rejects, .build = build,
    .cost = cost};

}  // namespace paceline
