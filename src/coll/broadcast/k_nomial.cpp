// K-nomial broadcast: who knows the message tells radix - 1 others at a time.
//
// Source   V. Bala et al.: CCL: a portable and tunable collective communication library for
//          scalable parallel computers. IEEE Trans. Parallel Distrib. Syst. 6(2):154-164, 1995.
//          doi 10.1109/71.342126
// Needs    nothing: any p >= 1, any n >= 0, any root.
// Cost     at most (k-1) ceil(log_k p) (alpha + n beta) (exact where p is a power of k and one
//          message is sent at a time); log_k p (alpha + n beta) where k - 1 are. The radix k is a
//          knob, 4 where it is left open.
// Scratch  none
// When     short messages where starting several costs little more than one: shared memory, or many
//          network ports.
// Order    moves data only.
//
// p = 5, root 0, radix 4; * knows the message.
//                 rank 0    rank 1    rank 2    rank 3    rank 4
//   start         *
//   round 0       *                                       *
//   round 1-3     *         *         *         *         *
#include "ir/algorithm.hpp"
#include "shapes/k_nomial.hpp"

namespace paceline {
namespace {

int cuts(const Problem&, const Knobs&) { return 1; }
int radix_of(const Knobs& knobs) { return knobs.radix > 1 ? knobs.radix : 4; }

void build(const Problem& pb, const Knobs& knobs, Builder& b) {
  const KNomialTree tree{pb.ranks, radix_of(knobs)};
  const int v = position_of(pb.rank, pb.root, pb.ranks);
  if (v != 0) b.recv(rank_at(tree.parent(v), pb.root, pb.ranks), {b.output()});
  for (int child : tree.children(v)) b.send(rank_at(child, pb.root, pb.ranks), {b.output()});
}

Cost cost(const Problem& pb, const Knobs& knobs) {
  // The root sends without a pause, and nobody further down ends later.
  const double sends = double(KNomialTree{pb.ranks, radix_of(knobs)}.children(0).size());
  return {.rounds = sends, .volume = sends, .reduced = 0};
}

}  // namespace

extern const Algorithm broadcast_k_nomial{
    .collective = Collective::broadcast, .name = "k_nomial", .cuts = cuts, .build = build,
    .cost = cost, .takes = kTakesRadix};

}  // namespace paceline
