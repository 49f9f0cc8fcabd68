// Hierarchical reduce_scatter: a node sums at its leader, leaders exchange sums and hand out units.
//
// Source   T. Kielmann, R. F. H. Hofman, H. E. Bal, A. Plaat, R. A. F. Bhoedjang: MagPIe: MPI's
//          collective communication operations for clustered wide area systems. PPoPP 1999,
//          131-140. doi 10.1145/301104.301116; here with load/store inside the node.
// Needs    k nodes, of which the largest has m ranks; operands that must stay in rank order need
//          ranks of a node that are neighbours. Any counts, zero among them.
// Cost     across as allreduce/recursive_doubling of k ranks, n the whole input; inside a node two
//          signals and (m-1) n + n/p read from others. By messages: ceil(log2 m) (alpha + n beta +
//          n gamma) and (m-1) (alpha + n/p beta).
// Scratch  staging buffer: 2 n; 3 n more on leaders. By messages: at most 7 n.
// When     short messages, several ranks on some of several nodes: leaders sum more than they need,
//          in fewest rounds.
// Order    rank order inside a node, then the nodes in the order of their first ranks: same bits in
//          every run for the same nodes.
//
// p = 5, nodes 012 and 34, units A to E; a digit is a contribution, * is final.
//             rank 0              rank 1      rank 2      rank 3              rank 4
//   sum       A012 .. E012                                A34 .. E34
//   across    A*   ..  E*                                 A*  .. E*
//   read      A*                  B*          C*          D*                  E*
#include "coll/algorithms.hpp"
#include "coll/in_node.hpp"

namespace paceline {
namespace {

void across(Builder& b, const Hierarchy& h, const Region& sums) {
  compose(b, b.problem().rank,
          {{.algorithm = &allreduce_recursive_doubling, .members = h.across(), .input = sums,
            .output = sums, .completes = true, .leaves_out = true}});
}

void by_messages(Builder& b, const Hierarchy& h) {
  const int rank = b.problem().rank;
  const bool leads = h.part() == 0;
  const Segment slot = leads ? b.scratch(b.input()) : b.input();
  const Region input = region_of(b.input()), sums = leads ? region_in(slot, input) : input;
  compose(b, rank, {sum_at_leader(h, input, sums)});
  if (!leads) return b.recv(h.leader(), {b.output(rank)});
  across(b, h, sums);
  for (int mate : h.others()) b.send(mate, {Builder::part(slot, mate, 1)});
  b.copy(Builder::part(slot, rank, 1), b.output(rank));
}

void build(const Problem& pb, const Knobs&, Builder& b) {
  const Hierarchy h(pb, 1);
  if (!h.stages()) return by_messages(b, h);
  const Segment shown = b.staging(b.input()), sums = b.staging(b.input());
  const Segment unit = b.output(pb.rank);
  if (h.part() != 0) {
    b.copy(b.input(), shown);
    b.signal(h.leader());
    b.wait(h.leader());
    return b.copy(b.of_peer(h.leader(), Builder::part(sums, pb.rank, 1)), unit);
  }
  if (h.mates().size() == 1) {
    b.copy(b.input(), sums);
  } else {
    h.wait_for_mates(b);
    sum(b, h.of_mates(b, shown, b.input()), sums);
  }
  across(b, h, region_in(sums, region_of(b.input())));
  h.signal_mates(b);
  b.copy(Builder::part(sums, pb.rank, 1), unit);
}

Cost cost(const Problem& pb, const Knobs&) {
  const Hierarchy h(pb, 1);
  Cost cost = allreduce_recursive_doubling.cost({.ranks = h.nodes()}, {});
  cost.messages = 0;
  const double others = h.most_ranks() - 1, told = others / pb.ranks, tree = tree_rounds(h);
  cost.reduced += h.stages() ? others : tree;
  if (others == 0) return cost;
  cost.near_rounds = h.stages() ? 2 : tree + others;
  cost.near_volume = h.stages() ? others + 1.0 / pb.ranks : tree + told;
  return cost;
}

}  // namespace

extern const Algorithm reduce_scatter_hierarchical{
    .collective = Collective::reduce_scatter, .name = "hierarchical",
    .rejects = unless_nodes_in_order, .build = build, .cost = cost, .access = Access::nodes};

}  // namespace paceline
