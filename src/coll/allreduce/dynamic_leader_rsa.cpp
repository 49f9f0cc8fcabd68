// Hierarchical-RSA with a dynamic leader inside: of a node's ranks but its leader the first to come
// adds what the others show, as they come; leaders do Rabenseifner's allreduce.
//
// Source   P. Alizadeh, Y. H. Temucin, A. Sojoodi, A. Afsahi: Efficient process arrival pattern
//          aware collective communication for deep learning. EuroMPI/USA 2022, there
//          Hierarchical-RSA+Small-PAP-aware: algorithm 1 (dynamic_leader.cpp) inside
//          hierarchical_rsa.cpp. Here who talks across is known to the other nodes beforehand, and
//          adds what the first has to its own. doi 10.1145/3555819.3555857
// Needs    commutative op; k nodes, of which the largest has m ranks, that share staging buffers.
//          Any n >= 0.
// Cost     across as allreduce/rabenseifner of k ranks; inside a node 3 signals one after the other
//          (2 where m = 2), m n read from others. When the last rank has come, one copy in, two
//          sums and the copies out are left.
// Scratch  staging buffer: n; n more on leaders.
// When     short and medium messages, several ranks on some of several nodes, that come at
//          different times.
// Order    order of arrival inside a node, its first rank last, then as allreduce/rabenseifner:
//          same bits on every rank, and others in the next run.
//
// p = 5, nodes 012 and 34; they come in the order 2, 4, 0, 3, 1. A digit is a contribution, * is
// final.
//             rank 0      rank 1      rank 2      rank 3      rank 4
//   start     0           1  (late)   2           3           4
//   show      0           1           2           3           4
//   add       0           1           21          34          4
//   add       021         1           21          34          4
//   across    *           1           21          *           4
//   read      *           *           *           *           *
#include "coll/allreduce/arrival_hierarchy.hpp"
#include "ir/algorithm.hpp"

namespace paceline {
namespace {

void build(const Problem& pb, const Knobs&, Builder& b) {
  const Hierarchy h(pb, 1);
  const std::vector<int>& ranks = h.mates();
  allreduce_by_arrival(b, h, 1, [&](int position, const Segment& slot) {
    if (position > 1 || ranks.size() == 2) b.copy(b.input(), slot);
    if (position > 1) return b.signal(ranks[1]);
    for (std::size_t k = 2; k < ranks.size(); ++k) {
      b.wait(ranks[k]);
      b.reduce({k == 2 ? b.input() : slot, b.of_peer(ranks[k], slot)}, slot);
    }
    b.signal(h.leader());
  });
}

Cost cost(const Problem& pb, const Knobs&) {
  const Hierarchy h(pb, 1);
  return cost_by_arrival(h, h.most_ranks() > 2 ? 3 : 2);
}

}  // namespace

extern const Algorithm allreduce_dynamic_leader_rsa{
    .collective = Collective::allreduce, .name = "dynamic_leader_rsa",
    .rejects = unless_nodes_stage, .cuts = cuts_by_arrival, .build = build, .cost = cost,
    .by_nodes = true, .claimed = true, .root_first = true, .follows_arrival = true};

}  // namespace paceline
