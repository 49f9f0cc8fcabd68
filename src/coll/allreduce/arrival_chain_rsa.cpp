// Hierarchical-RSA with a chain along the order of arrival inside: a node's ranks but its leader
// add to what the one before has, as they come; leaders do Rabenseifner's allreduce.
//
// Source   P. Alizadeh, Y. H. Temucin, A. Sojoodi, A. Afsahi: Efficient process arrival pattern
//          aware collective communication for deep learning. EuroMPI/USA 2022, there
//          Hierarchical-RSA+Large-PAP-aware: algorithm 2 (reduce/arrival_chain.cpp) inside
//          hierarchical_rsa.cpp. Here the leader is the end of the chain, whenever it comes, and
//          adds where the document's root copies. doi 10.1145/3555819.3555857
// Needs    commutative op; k nodes, of which the largest has m ranks, that share staging buffers.
//          Any n >= 0.
// Cost     across as allreduce/rabenseifner of k ranks; inside a node m signals one after the
//          other, m n read from others. When the last rank has come, two sums and the copies out
//          are left.
// Scratch  staging buffer: n; n more on leaders.
// When     long messages, several ranks on some of several nodes, that come at different times.
// Order    order of arrival inside a node, its first rank last, then as allreduce/rabenseifner:
//          same bits on every rank, and others in the next run.
//
// p = 5, nodes 012 and 34; they come in the order 2, 4, 0, 3, 1. A digit is a contribution, * is
// final.
//             rank 0      rank 1      rank 2      rank 3      rank 4
//   start     0           1  (late)   2           3           4
//   add       0           21          2           34          4
//   add       021         21          2           34          4
//   across    *           21          2           *           4
//   read      *           *           *           *           *
#include "coll/allreduce/arrival_hierarchy.hpp"
#include "ir/algorithm.hpp"

namespace paceline {
namespace {

void build(const Problem& pb, const Knobs&, Builder& b) {
  const Hierarchy h(pb, 1);
  const std::vector<int>& ranks = h.mates();
  const int last = static_cast<int>(ranks.size()) - 1;
  allreduce_by_arrival(b, h, last, [&](int position, const Segment& slot) {
    if (position == 1) {
      b.copy(b.input(), slot);
    } else {
      const int before = ranks[std::size_t(position - 1)];
      b.wait(before);
      b.reduce({b.of_peer(before, slot), b.input()}, slot);
    }
    b.signal(position == last ? h.leader() : ranks[std::size_t(position + 1)]);
  });
}

Cost cost(const Problem& pb, const Knobs&) {
  const Hierarchy h(pb, 1);
  return cost_by_arrival(h, h.most_ranks());
}

}  // namespace

extern const Algorithm allreduce_arrival_chain_rsa{
    .collective = Collective::allreduce, .name = "arrival_chain_rsa",
    .rejects = unless_nodes_stage, .cuts = cuts_by_arrival, .build = build, .cost = cost,
    .by_nodes = true, .claimed = true, .root_first = true, .follows_arrival = true};

}  // namespace paceline
