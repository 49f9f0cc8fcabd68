// Static leader allreduce: rank 0 waits for all others, sums what they show, and shows the sum.
//
// Source   P. Alizadeh, Y. H. Temucin, A. Sojoodi, A. Afsahi: Efficient process arrival pattern
//          aware collective communication for deep learning. EuroMPI/USA 2022, section 5.1: the
//          two-step algorithm that theirs is measured against. doi 10.1145/3555819.3555857
// Needs    ranks of one node. Any p >= 1, any n >= 0; operands stay in rank order.
// Cost     2 signals one after the other; n copied in by each of the others, p n read and n gamma
//          (p-1) by rank 0, n copied out by each of the others.
// Scratch  n
// When     as a baseline: it is never chosen.
// Order    rank order from left to right: same bits on every rank and in every run.
//
// p = 3; a digit is a contribution, * is final.
//              rank 0            rank 1            rank 2
//              buffer  stage     buffer  stage     buffer  stage
//   start      A0                A1                A2
//   show       A0                A1      A1        A2      A2
//   tell       wait                0                 0
//   sum        A*      A*        A1      A1        A2      A2
//   tell       1 2               wait              wait
//   copy out   A*      A*        A*      A1        A*      A2
#include "coll/leader.hpp"
#include "ir/algorithm.hpp"

namespace paceline {
namespace {

// Beyond kSourcesAtOnce operands the sum begins in the output, which may be the input: then the
// leader shows its vector as well, and adds it from there.
void build(const Problem& pb, const Knobs&, Builder& b) {
  const Segment slot = b.scratch(b.output());
  if (pb.rank != 0) {
    show_input(b, 0, slot);
    return take_sum(b, 0, slot);
  }
  const bool many = pb.ranks > kSourcesAtOnce;
  if (many) b.copy(b.input(), slot);
  wait_for_others(b);
  sum(b, of_everybody(b, slot, many ? slot : b.input()), b.output());
  show_sum(b, slot);
}

}  // namespace

extern const Algorithm allreduce_static_leader{
    .collective = Collective::allreduce, .name = "static_leader", .cuts = one_block, .build = build,
    .cost = cost_of_leader, .access = Access::staging, .canonical = true};

}  // namespace paceline
