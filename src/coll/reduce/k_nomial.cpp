// K-nomial reduce: a k-nomial broadcast run backwards, adding on the way up.
//
// Source   V. Bala et al.: CCL: a portable and tunable collective communication library for
//          scalable parallel computers. IEEE Trans. Parallel Distrib. Syst. 6(2):154-164, 1995.
//          doi 10.1109/71.342126. Its broadcast, backwards.
// Needs    commutative op unless the root is rank 0. Any p >= 1, any n >= 0.
// Cost     at most (k-1) ceil(log_k p) (alpha + n beta + n gamma) (exact where p is a power of k
//          and one message comes at a time), less what is added while the next one comes. At most
//          ceil(log_k p) messages wait for one another. The radix k is a knob, 4 where it is left
//          open.
// Scratch  at most k + 1 times n elements on inner ranks, k n at the root.
// When     short messages of p = 9 and others whose binomial tree has as many messages at its root
//          but a longer way to it.
// Order    from the root upwards in aligned blocks of powers of k: same bits in every run.
//
// p = 5, root 0, radix 3; a digit is a contribution, * is final.
//                 rank 0    rank 1    rank 2    rank 3    rank 4
//   start         0         1         2         3         4
//   round 0       01                            34
//   round 1       012
//   round 2       *
#include <algorithm>

#include "coll/rejects.hpp"
#include "ir/algorithm.hpp"
#include "shapes/k_nomial.hpp"

namespace paceline {
namespace {

int radix_of(const Knobs& knobs) { return knobs.radix > 1 ? knobs.radix : 4; }

std::optional<Reason> rejects(const Problem& pb) { return unless_root_may_begin(pb); }

void build(const Problem& pb, const Knobs& knobs, Builder& b) {
  const KNomialTree tree{pb.ranks, radix_of(knobs)};
  const int v = position_of(pb.rank, pb.root, pb.ranks);
  std::vector<int> children = tree.children(v);
  std::sort(children.begin(), children.end());   // the smallest subtrees first, by their ranks
  const bool root = v == 0;
  Segment sum = b.input();
  if (!children.empty()) {
    const Segment target = root ? b.output() : b.scratch(b.input());
    std::vector<Segment> spare;   // room for the messages of a level
    for (int k = 0; k < std::min(tree.radix, int(children.size())); ++k)
      spare.push_back(b.scratch(b.input()));
    for (std::size_t k = 0; k < children.size(); ++k) {
      const Segment& came = spare[k % spare.size()];
      b.recv(rank_at(children[k], pb.root, pb.ranks), {came});
      b.reduce({sum, came}, target);
      sum = target;
    }
  }
  if (!root) return b.send(rank_at(tree.parent(v), pb.root, pb.ranks), {sum});
  b.copy(sum, b.output());
  b.finish(b.output());
}

Cost cost(const Problem& pb, const Knobs& knobs) {
  // The root takes in one message after another without a pause, and no rank begins earlier.
  const double comes = double(KNomialTree{pb.ranks, radix_of(knobs)}.children(0).size());
  return {.rounds = comes, .volume = comes, .reduced = comes, .messages = pb.ranks - 1.0};
}

}  // namespace

extern const Algorithm reduce_k_nomial{
    .collective = Collective::reduce, .name = "k_nomial", .rejects = rejects, .build = build,
    .cost = cost, .takes = kTakesRadix};

}  // namespace paceline
