// Allreduce in lanes: nodes scatter their sums, every part is summed across nodes, nodes gather.
//
// Source   J. L. Träff, S. Hunold: Decomposing collectives for exploiting multi-lane communication.
//          arXiv 1910.13373
// Needs    commutative op; k nodes with g ranks each. Any n >= 0; blocks may be empty.
// Cost     across 2 (k-1) g alpha + 2 (k-1)/k n beta at the port of a node, and inside it
//          2 (g-1) alpha + 2 (g-1)/g n beta; (1 - 1/(g k)) n gamma (exact when g k divides n)
// Scratch  at most 4 ceil(n/g) elements.
// When     long messages, several ranks on each of several nodes, in any order.
// Order    round the ring of the node, then round that of the nodes: same bits on every rank and in
//          every run for the same nodes.
//
// p = 4, nodes 01 and 23, lanes A and B; a digit is a contribution, * is final.
//                 rank 0       rank 1       rank 2       rank 3
//   start         A0   B0      A1   B1      A2   B2      A3   B3
//   scatter       A01               B01     A23               B23
//   across        A*                B*      A*                B*
//   gather        A*   B*      A*   B*      A*   B*      A*   B*
#include "coll/lanes.hpp"
#include "coll/registry.hpp"
#include "coll/rejects.hpp"

namespace paceline {
namespace {

int cuts(const Problem& pb, const Knobs&) { return pb.ranks; }

std::optional<Reason> rejects(const Problem& pb) {
  return unless_commutative(pb, "a ring sums in ring order", "binomial");
}

void build(const Problem& pb, const Knobs&, Builder& b) {
  const Lanes lanes(pb);
  const Region input = region_of(b.input()), output = region_of(b.output());
  const Region own = lanes.own(output);
  compose(b, pb.rank,
          {{.algorithm = &reduce_scatter_ring, .members = lanes.mates(),
            .input = input, .output = output},
           {.algorithm = &allreduce_ring, .members = lanes.twins(),
            .input = own, .output = own, .completes = true},
           {.algorithm = &allgather_ring, .members = lanes.mates(),
            .input = output, .output = output}});
}

Cost cost(const Problem& pb, const Knobs&) {
  const Lanes lanes(pb);
  const double k = lanes.nodes(), g = lanes.count();
  return {.rounds = 2 * (k - 1) * g, .volume = 2 * (k - 1) / k, .reduced = 1 - 1 / (g * k),
          .near_rounds = 2 * (g - 1), .near_volume = 2 * (g - 1) / g};
}

}  // namespace

const Algorithm allreduce_lanes{.collective = Collective::allreduce, .name = "lanes",
                                .rejects = rejects, .cuts = cuts, .build = build, .cost = cost,
                                .grouped = true};

}  // namespace paceline
