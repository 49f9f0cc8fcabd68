// Reduce in lanes: nodes scatter their sums, which add up from node to node; the root gathers.
//
// Source   J. L. Träff, S. Hunold: Decomposing collectives for exploiting multi-lane communication.
//          arXiv 1910.13373
// Needs    commutative op; k nodes with g ranks each. Any root, any n >= 0; blocks may be empty.
// Cost     across (k-2+g) (alpha + n/g beta) at the port of a node, inside it 2 (g-1) alpha +
//          2 (g-1)/g n beta, and (g+k-2)/g n gamma (exact when g divides n); in B pieces the
//          chains are a pipe, and across it takes about (k-2+g B) (alpha + n/(g B) beta)
// Scratch  at most 7 ceil(n/g) elements.
// When     long messages in pieces, several ranks on each of several nodes, in any order.
// Order    round the ring of the node, then down the chain of the nodes: same bits in every run for
//          the same nodes.
//
// p = 4, nodes 01 and 23, root 0, lanes A and B; a digit is a contribution, * is final.
//                 rank 0       rank 1       rank 2       rank 3
//   start         A0   B0      A1   B1      A2   B2      A3   B3
//   scatter       A01               B01     A23               B23
//   across        A*                B*      A23               B23
//   gather        A*   B*           B*      A23               B23
#include "coll/lanes.hpp"
#include "coll/registry.hpp"
#include "coll/rejects.hpp"

namespace paceline {
namespace {

int cuts(const Problem& pb, const Knobs&) { return Lanes(pb).count(); }

std::optional<Reason> rejects(const Problem& pb) {
  return unless_commutative(pb, "a ring sums in ring order", "linear");
}

// Only the root has an output; another rank has room of its own for its part.
void build(const Problem& pb, const Knobs&, Builder& b) {
  const Lanes lanes(pb);
  const Region input = region_of(b.input());
  const Region sums = pb.rank == pb.root
                          ? region_of(b.output())
                          : region_in(b.scratch(b.input(lanes.lane())), input);
  const int node = lanes.node_of(pb.root);
  std::vector<Phase> phases{
      {.algorithm = &reduce_scatter_ring, .members = lanes.mates(),
       .input = input, .output = sums},
      {.algorithm = &reduce_chain, .members = lanes.twins(), .root = node,
       .input = lanes.own(sums), .output = lanes.own(sums), .completes = true}};
  if (lanes.node() == node)
    phases.push_back({.algorithm = &gather_linear, .members = lanes.mates(),
                      .root = lanes.lane_of(pb.root), .input = sums, .output = sums});
  compose(b, pb.rank, phases);
}

Cost cost(const Problem& pb, const Knobs&) {
  const Lanes lanes(pb);
  const double k = lanes.nodes(), g = lanes.count();
  const double hops = k > 1 ? k - 2 + g : 0;
  return {.rounds = hops, .volume = hops / g, .reduced = (g + k - 2) / g,
          .near_rounds = 2 * (g - 1), .near_volume = 2 * (g - 1) / g};
}

}  // namespace

const Algorithm reduce_lanes{.collective = Collective::reduce, .name = "lanes",
                             .rejects = rejects, .cuts = cuts, .build = build, .cost = cost,
                             .grouped = true};

}  // namespace paceline
