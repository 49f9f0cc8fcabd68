// Hierarchical allgather: a node gathers at its leader, leaders double what they have, all read it.
//
// Source   T. Kielmann, R. F. H. Hofman, H. E. Bal, A. Plaat, R. A. F. Bhoedjang: MagPIe: MPI's
//          collective communication operations for clustered wide area systems. PPoPP 1999,
//          131-140. doi 10.1145/301104.301116; here with load/store inside the node.
//          Between leaders: J. Bruck, C.-T. Ho, S. Kipnis, E. Upfal, D. Weathersby: Efficient
//          algorithms for all-to-all communications in multiport message-passing systems. IEEE
//          Trans. Parallel Distrib. Syst. 8(11):1143-1156, 1997. doi 10.1109/71.642949
// Needs    k nodes, of which the smallest has g ranks and the largest m. Any counts, zero among
//          them.
// Cost     across ceil(log2 k) alpha + (1 - g/p) n beta, n the whole result; inside a node two
//          signals, (m-1)/p n and (p-1)/p n read from others. By messages: (m-1) alpha + (m-1)/p n
//          beta and ceil(log2 m) (alpha + n beta).
// Scratch  staging buffer: a unit, and n. By messages: none.
// When     short messages, several ranks on some of several nodes.
// Order    moves data only.
//
// p = 5, nodes 012 and 34, units A to E.
//             rank 0      rank 1      rank 2      rank 3      rank 4
//   start     A           B           C           D           E
//   gather    A B C       B           C           D E         E
//   across    A B C D E   B           C           A B C D E   E
//   read      A B C D E   A B C D E   A B C D E   A B C D E   A B C D E
#include "coll/in_node.hpp"
#include "ir/algorithm.hpp"

namespace paceline {
namespace {

// In every round doubles the number of nodes whose units it has: this one and those after it.
void across(Builder& b, const Hierarchy& h) {
  const int k = h.nodes(), node = h.node();
  const auto units_of_nodes = [&](int first, int last) {
    std::vector<Segment> units;
    for (int i = first; i < last; ++i)
      for (int rank : h.units((node + i) % k, 0)) units.push_back(b.output(rank));
    return units;
  };
  for (int have = 1; have < k; have *= 2) {
    const int more = std::min(have, k - have);
    b.send(h.leader_of((node + k - have) % k), units_of_nodes(0, more));
    b.recv(h.leader_of((node + have) % k), units_of_nodes(have, have + more));
  }
}

void by_messages(Builder& b, const Hierarchy& h) {
  const int rank = b.problem().rank;
  if (h.part() != 0) {
    b.send(h.leader(), {b.output(rank)});
  } else {
    for (int mate : h.others()) b.recv(mate, {b.output(mate)});
    across(b, h);
  }
  compose(b, rank, {tell_node(h, region_of(b.output()))});
}

void build(const Problem& pb, const Knobs&, Builder& b) {
  const Hierarchy h(pb, 1);
  if (!h.stages()) {
    b.copy(b.input(pb.rank), b.output(pb.rank));
    return by_messages(b, h);
  }
  const Segment own = b.staging(b.output(0)), all = b.staging(b.output());
  const auto unit = [&](int rank) { return b.output(rank); };
  b.copy(b.input(pb.rank), unit(pb.rank));
  if (h.part() != 0) {
    b.copy(b.input(pb.rank), Builder::as(own, unit(pb.rank)));
    b.signal(h.leader());
    b.wait(h.leader());
    for (int rank = 0; rank < pb.ranks; ++rank)
      if (rank != pb.rank)
        b.copy(b.of_peer(h.leader(), Builder::part(all, rank, 1)), unit(rank));
    return;
  }
  if (h.mates().size() == 1) return across(b, h);
  h.wait_for_mates(b);
  for (int mate : h.others())
    b.copy(b.of_peer(mate, Builder::as(own, unit(mate))), unit(mate));
  across(b, h);
  b.copy(b.output(), all);
  h.signal_mates(b);
}

Cost cost(const Problem& pb, const Knobs&) {
  const Hierarchy h(pb, 1);
  const double k = h.nodes(), p = pb.ranks, others = h.most_ranks() - 1, tree = tree_rounds(h);
  Cost cost{.rounds = double(ceil_log2(h.nodes())),
            .volume = k > 1 ? 1 - h.least_ranks() / p : 0, .reduced = 0};
  if (others == 0) return cost;
  cost.near_rounds = h.stages() ? 2 : others + tree;
  cost.near_volume = others / p + (h.stages() ? (p - 1) / p : tree);
  return cost;
}

}  // namespace

extern const Algorithm allgather_hierarchical{
    .collective = Collective::allgather, .name = "hierarchical", .build = build, .cost = cost,
    .access = Access::nodes};

}  // namespace paceline
