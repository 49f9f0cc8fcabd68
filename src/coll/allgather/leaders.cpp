// Allgather by leaders: nodes gather at their leaders, which double what they have, and are told.
//
// Source   T. Kielmann, R. F. H. Hofman, H. E. Bal, A. Plaat, R. A. F. Bhoedjang: MagPIe: MPI's
//          collective communication operations for clustered wide area systems. PPoPP 1999,
//          131-140. doi 10.1145/301104.301116
//          Between leaders: J. Bruck, C.-T. Ho, S. Kipnis, E. Upfal, D. Weathersby: Efficient
//          algorithms for all-to-all communications in multiport message-passing systems. IEEE
//          Trans. Parallel Distrib. Syst. 8(11):1143-1156, 1997. doi 10.1109/71.642949
// Needs    k nodes with g ranks each. Any counts, zero among them.
// Cost     across ceil(log2 k) alpha + (k-1)/k n beta, and inside a node (g-1) alpha + (g-1)/p n
//          beta to gather, ceil(log2 g) (alpha + n beta) to tell, n the whole result (exact when
//          the units are equal)
// Scratch  none
// When     short messages, several ranks on each of several nodes.
// Order    moves data only.
//
// p = 4, nodes 01 and 23, units A B C D.
//                 rank 0            rank 1            rank 2            rank 3
//   start         A                      B                      C                      D
//   gather        A    B                 B                      C    D                 D
//   across        A    B    C    D       B            A    B    C    D                 D
//   tell          A    B    C    D  A    B    C    D  A    B    C    D  A    B    C    D
#include <algorithm>

#include "coll/leaders.hpp"
#include "coll/registry.hpp"
#include "shapes/binomial.hpp"

namespace paceline {
namespace {

int cuts(const Problem&, const Knobs&) { return 1; }

// In every round twice as many nodes' units, of this one and those after it.
void across(Builder& b, const Lanes& lanes) {
  const int k = lanes.nodes(), node = lanes.node();
  const auto units_of_nodes = [&](int first, int last) {
    std::vector<Segment> units;
    for (int i = first; i < last; ++i)
      for (int lane = 0; lane < lanes.count(); ++lane)
        units.push_back(b.output(lanes.rank_of((node + i) % k, lane)));
    return units;
  };
  for (int have = 1; have < k; have *= 2) {
    const int more = std::min(have, k - have);
    b.send(lanes.rank_of((node + k - have) % k, 0), units_of_nodes(0, more));
    b.recv(lanes.rank_of((node + have) % k, 0), units_of_nodes(have, have + more));
  }
}

void build(const Problem& pb, const Knobs&, Builder& b) {
  const Lanes lanes(pb);
  b.copy(b.input(pb.rank), b.output(pb.rank));
  if (lanes.lane() > 0) {
    b.send(lanes.rank_of(lanes.node(), 0), {b.output(pb.rank)});
  } else {
    for (int lane = 1; lane < lanes.count(); ++lane) {
      const int mate = lanes.rank_of(lanes.node(), lane);
      b.recv(mate, {b.output(mate)});
    }
    across(b, lanes);
  }
  compose(b, pb.rank, {{.algorithm = &broadcast_binomial, .members = lanes.mates(),
                        .input = region_of(b.output()), .output = region_of(b.output())}});
}

Cost cost(const Problem& pb, const Knobs&) {
  const Problem mates = among_mates(pb);
  const double k = Lanes(pb).nodes(), g = mates.ranks;
  const Cost tell = broadcast_binomial.cost(mates, {});
  return cost_of({.rounds = g - 1, .volume = (g - 1) / (g * k), .reduced = 0},
                 {.rounds = double(ceil_log2(int(k))), .volume = (k - 1) / k, .reduced = 0}, tell);
}

}  // namespace

const Algorithm allgather_leaders{.collective = Collective::allgather, .name = "leaders",
                                  .rejects = serves_all, .cuts = cuts, .build = build,
                                  .cost = cost, .grouped = true};

}  // namespace paceline
