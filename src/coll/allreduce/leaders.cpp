// Allreduce by leaders: every node sums at its leader, leaders add up, and every node is told.
//
// Source   T. Kielmann, R. F. H. Hofman, H. E. Bal, A. Plaat, R. A. F. Bhoedjang: MagPIe: MPI's
//          collective communication operations for clustered wide area systems. PPoPP 1999,
//          131-140. doi 10.1145/301104.301116
// Needs    k nodes with g ranks each; operands that must stay in rank order need ranks of a node
//          that are neighbours. Any n >= 0.
// Cost     across as allreduce/recursive_doubling of k ranks, and inside a node 2 ceil(log2 g)
//          (alpha + n beta) and ceil(log2 g) n gamma
// Scratch  at most 3 n elements on ranks that add up inside a node, 3 n more on leaders.
// When     short messages, several ranks on each of several nodes.
// Order    rank order inside a node, then the nodes in the order of their first ranks: same bits on
//          every rank and in every run for the same nodes.
//
// p = 4, nodes 01 and 23; a digit is a contribution, * is final.
//                 rank 0    rank 1    rank 2    rank 3
//   start         0         1         2         3
//   sum           01        1         23        3
//   across        *         1         *         3
//   tell          *         *         *         *
#include "coll/leaders.hpp"
#include "coll/registry.hpp"

namespace paceline {
namespace {

int cuts(const Problem&, const Knobs&) { return 1; }

void build(const Problem& pb, const Knobs&, Builder& b) {
  const Lanes lanes(pb);
  const Region input = region_of(b.input()), output = region_of(b.output());
  std::vector<Phase> phases{{.algorithm = &reduce_binomial, .members = lanes.mates(),
                             .input = input, .output = output}};
  if (lanes.lane() == 0)
    phases.push_back({.algorithm = &allreduce_recursive_doubling, .members = lanes.twins(),
                      .input = output, .output = output, .completes = true});
  phases.push_back({.algorithm = &broadcast_binomial, .members = lanes.mates(),
                    .input = output, .output = output});
  compose(b, pb.rank, phases);
}

Cost cost(const Problem& pb, const Knobs&) {
  const Problem mates = among_mates(pb);
  return cost_of(reduce_binomial.cost(mates, {}),
                 allreduce_recursive_doubling.cost(among_leaders(pb), {}),
                 broadcast_binomial.cost(mates, {}));
}

}  // namespace

const Algorithm allreduce_leaders{.collective = Collective::allreduce, .name = "leaders",
                                  .rejects = rejects_scattered_nodes, .cuts = cuts,
                                  .build = build, .cost = cost, .grouped = true};

}  // namespace paceline
