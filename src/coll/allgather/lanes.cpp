// Allgather in lanes: ranks gather from their twins on other nodes, and then nodes gather that.
//
// Source   J. L. Träff, S. Hunold: Decomposing collectives for exploiting multi-lane communication.
//          arXiv 1910.13373
// Needs    k nodes with g ranks each. Any counts, zero among them.
// Cost     across (k-1) g alpha + (k-1)/k n beta at the port of a node, and inside it (g-1) alpha +
//          (g-1)/g n beta, n the whole result (exact when the units are equal)
// Scratch  none
// When     long messages, several ranks on each of several nodes, in any order.
// Order    moves data only.
//
// p = 4, nodes 01 and 23, units A B C D.
//                 rank 0            rank 1            rank 2            rank 3
//   start         A                      B                      C                      D
//   across        A         C            B         D  A         C            B         D
//   gather        A    B    C    D  A    B    C    D  A    B    C    D  A    B    C    D
#include "coll/lanes.hpp"
#include "coll/registry.hpp"

namespace paceline {
namespace {

int cuts(const Problem&, const Knobs&) { return 1; }

void build(const Problem& pb, const Knobs&, Builder& b) {
  const Lanes lanes(pb);
  const int k = lanes.nodes(), g = lanes.count(), node = lanes.node(), lane = lanes.lane();
  b.copy(b.input(pb.rank), b.output(pb.rank));
  const auto unit = [&](int i) { return b.output(lanes.rank_of((i + k) % k, lane)); };
  for (int step = 0; step < k - 1; ++step) {
    b.send(lanes.rank_of((node + 1) % k, lane), {unit(node - step)});
    b.recv(lanes.rank_of((node + k - 1) % k, lane), {unit(node - step - 1)});
  }
  const auto brought = [&](int i) {
    std::vector<Segment> units;
    for (int from = 0; from < k; ++from)
      units.push_back(b.output(lanes.rank_of(from, (i + g) % g)));
    return units;
  };
  for (int step = 0; step < g - 1; ++step) {
    b.send(lanes.rank_of(node, (lane + 1) % g), brought(lane - step));
    b.recv(lanes.rank_of(node, (lane + g - 1) % g), brought(lane - step - 1));
  }
}

Cost cost(const Problem& pb, const Knobs&) {
  const Lanes lanes(pb);
  const double k = lanes.nodes(), g = lanes.count();
  return {.rounds = (k - 1) * g, .volume = (k - 1) / k, .reduced = 0,
          .near_rounds = g - 1, .near_volume = (g - 1) / g};
}

}  // namespace

const Algorithm allgather_lanes{.collective = Collective::allgather, .name = "lanes",
                                .rejects = serves_all, .cuts = cuts, .build = build, .cost = cost,
                                .grouped = true};

}  // namespace paceline
