// Reduce by leaders: every node sums at one of its ranks, and those sum at the root.
//
// Source   T. Kielmann, R. F. H. Hofman, H. E. Bal, A. Plaat, R. A. F. Bhoedjang: MagPIe: MPI's
//          collective communication operations for clustered wide area systems. PPoPP 1999,
//          131-140. doi 10.1145/301104.301116
// Needs    k nodes with g ranks each; operands that must stay in rank order need ranks of a node
//          that are neighbours, and rank 0 as the root. Any n >= 0.
// Cost     across ceil(log2 k) (alpha + n beta), inside a node ceil(log2 g) (alpha + n beta), and
//          (ceil(log2 k) + ceil(log2 g)) n gamma
// Scratch  at most 7 n elements.
// When     short messages, several ranks on each of several nodes.
// Order    from the root's place in the node on, then node by node from the root's: same bits in
//          every run for the same nodes.
//
// p = 4, nodes 01 and 23, root 1, whose twin is rank 3; a digit is a contribution, * is final.
//                 rank 0    rank 1    rank 2    rank 3
//   start         0         1         2         3
//   sum           0         01        2         23
//   across        0         *         2         23
#include "coll/leaders.hpp"
#include "coll/registry.hpp"
#include "coll/rejects.hpp"

namespace paceline {
namespace {

int cuts(const Problem&, const Knobs&) { return 1; }

std::optional<Reason> rejects(const Problem& pb) {
  if (const auto reason = unless_root_may_begin(pb)) return reason;
  return rejects_scattered_nodes(pb);
}

// Only the root has an output; another leader has room of its own for its node's sum.
void build(const Problem& pb, const Knobs&, Builder& b) {
  const Lanes lanes(pb);
  const Region input = region_of(b.input());
  const int leader = lanes.lane_of(pb.root);
  const bool leads = lanes.lane() == leader && pb.rank != pb.root;
  const Region sum = leads ? region_in(b.scratch(b.input()), input) : region_of(b.output());
  std::vector<Phase> phases{{.algorithm = &reduce_binomial, .members = lanes.mates(),
                             .root = leader, .input = input, .output = sum}};
  if (lanes.lane() == leader)
    phases.push_back({.algorithm = &reduce_binomial, .members = lanes.twins(),
                      .root = lanes.node_of(pb.root), .input = sum, .output = sum,
                      .completes = true});
  compose(b, pb.rank, phases);
}

Cost cost(const Problem& pb, const Knobs&) {
  return cost_of(reduce_binomial.cost(among_mates(pb), {}),
                 reduce_binomial.cost(among_leaders(pb), {}), {});
}

}  // namespace

const Algorithm reduce_leaders{.collective = Collective::reduce, .name = "leaders",
                               .rejects = rejects, .cuts = cuts, .build = build, .cost = cost,
                               .grouped = true};

}  // namespace paceline
