// Broadcast by leaders: the root tells one rank of every node, and that one its node.
//
// Source   T. Kielmann, R. F. H. Hofman, H. E. Bal, A. Plaat, R. A. F. Bhoedjang: MagPIe: MPI's
//          collective communication operations for clustered wide area systems. PPoPP 1999,
//          131-140. doi 10.1145/301104.301116
// Needs    k nodes with g ranks each. Any root, any n >= 0.
// Cost     across ceil(log2 k) (alpha + n beta), and inside a node ceil(log2 g) (alpha + n beta)
// Scratch  none
// When     short messages, several ranks on each of several nodes.
// Order    moves data only.
//
// p = 4, nodes 01 and 23, root 1, whose twin is rank 3.
//                 rank 0    rank 1    rank 2    rank 3
//   start                   A
//   across                  A                   A
//   tell          A         A         A         A
#include "coll/leaders.hpp"
#include "coll/registry.hpp"

namespace paceline {
namespace {

int cuts(const Problem&, const Knobs&) { return 1; }

void build(const Problem& pb, const Knobs&, Builder& b) {
  const Lanes lanes(pb);
  const Region all = region_of(b.output());
  const int leader = lanes.lane_of(pb.root);
  std::vector<Phase> phases;
  if (lanes.lane() == leader)
    phases.push_back({.algorithm = &broadcast_binomial, .members = lanes.twins(),
                      .root = lanes.node_of(pb.root), .input = all, .output = all});
  phases.push_back({.algorithm = &broadcast_binomial, .members = lanes.mates(), .root = leader,
                    .input = all, .output = all});
  compose(b, pb.rank, phases);
}

Cost cost(const Problem& pb, const Knobs&) {
  return cost_of({}, broadcast_binomial.cost(among_leaders(pb), {}),
                 broadcast_binomial.cost(among_mates(pb), {}));
}

}  // namespace

const Algorithm broadcast_leaders{.collective = Collective::broadcast, .name = "leaders",
                                  .rejects = serves_all, .cuts = cuts, .build = build,
                                  .cost = cost, .grouped = true};

}  // namespace paceline
