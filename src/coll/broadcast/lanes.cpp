// Broadcast in lanes: the root's node scatters, parts go from node to node, and nodes gather.
//
// Source   J. L. Träff, S. Hunold: Decomposing collectives for exploiting multi-lane communication.
//          arXiv 1910.13373
// Needs    k nodes with g ranks each. Any root, any n >= 0; blocks may be empty.
// Cost     across (k-2+g) (alpha + n/g beta) at the port of a node, and inside it 2 (g-1) alpha +
//          2 (g-1)/g n beta (exact when g divides n, in step; inside, up to 7/6 of it where
//          messages overtake each other); in B pieces the chains are a pipe, and across it takes
//          about (k-2+g B) (alpha + n/(g B) beta)
// Scratch  none
// When     long messages in pieces, several ranks on each of several nodes, in any order.
// Order    moves data only.
//
// p = 4, nodes 01 and 23, root 0, lanes A and B.
//                 rank 0       rank 1       rank 2       rank 3
//   start         A    B
//   scatter       A    B            B
//   across        A    B            B       A                 B
//   gather        A    B       A    B       A    B       A    B
#include "coll/lanes.hpp"
#include "coll/registry.hpp"

namespace paceline {
namespace {

int cuts(const Problem& pb, const Knobs&) { return Lanes(pb).count(); }

void build(const Problem& pb, const Knobs&, Builder& b) {
  const Lanes lanes(pb);
  const Region all = region_of(b.output()), own = lanes.own(all);
  const int node = lanes.node_of(pb.root);
  std::vector<Phase> phases;
  if (lanes.node() == node)
    phases.push_back({.algorithm = &scatter_linear, .members = lanes.mates(),
                      .root = lanes.lane_of(pb.root), .input = all, .output = all});
  phases.push_back({.algorithm = &broadcast_chain, .members = lanes.twins(), .root = node,
                    .input = own, .output = own});
  phases.push_back({.algorithm = &allgather_ring, .members = lanes.mates(),
                    .input = all, .output = all});
  compose(b, pb.rank, phases);
}

Cost cost(const Problem& pb, const Knobs&) {
  const Lanes lanes(pb);
  const double k = lanes.nodes(), g = lanes.count();
  const double hops = k > 1 ? k - 2 + g : 0;
  return {.rounds = hops, .volume = hops / g, .reduced = 0,
          .near_rounds = 2 * (g - 1), .near_volume = 2 * (g - 1) / g};
}

}  // namespace

const Algorithm broadcast_lanes{.collective = Collective::broadcast, .name = "lanes",
                                .rejects = serves_all, .cuts = cuts, .build = build, .cost = cost,
                                .grouped = true};

}  // namespace paceline
