// Reduce-scatter in lanes: nodes scatter their sums, of units in turn, and then lanes do so.
//
// Source   J. L. Träff, S. Hunold: Decomposing collectives for exploiting multi-lane communication.
//          arXiv 1910.13373
// Needs    commutative op; k nodes with g ranks each. Any counts, zero among them.
// Cost     across (k-1) g alpha + (k-1)/k n beta at the port of a node, and inside it (g-1) alpha +
//          (g-1)/g n beta; (1 - 1/(g k)) n gamma (exact when the units are equal)
// Scratch  at most 4 k + 4 units of the longest size
// When     long messages, several ranks on each of several nodes, in any order.
// Order    round the ring of the node, then round that of the nodes: same bits in every run for the
//          same nodes.
//
// p = 4, nodes 01 and 23, units A B C D; a digit is a contribution, * is final.
//                 rank 0            rank 1            rank 2            rank 3
//   start         A0   B0   C0   D0 A1   B1   C1   D1 A2   B2   C2   D2 A3   B3   C3   D3
//   scatter       A01       C01          B01      D01 A23       C23          B23      D23
//   across        A*                     B*                     C*                     D*
#include "coll/lanes.hpp"
#include "coll/registry.hpp"
#include "coll/rejects.hpp"

namespace paceline {
namespace {

int cuts(const Problem&, const Knobs&) { return 1; }

std::optional<Reason> rejects(const Problem& pb) {
  return unless_commutative(pb, "a ring sums in ring order", "direct");
}

using Units = std::vector<Segment>;

// This rank's place in a ring, and its neighbours there.
struct Ring {
  int size, at, left, right;
};

// Sums go round the ring: what this rank has of a place is mine(place); the sums of its own place
// are returned. They are in `target`, if there is one. Two sets of scratch take turns.
template <class Mine>
Units round_ring(Builder& b, const Ring& ring, const Mine& mine, const Units& target = {}) {
  Units came[2], partial[2], travels = mine((ring.at + ring.size - 1) % ring.size);
  for (int turn = 0; turn < 2 && ring.size > 1; ++turn)
    for (const Segment& unit : mine(ring.at)) {
      came[turn].push_back(b.scratch(unit));
      partial[turn].push_back(b.scratch(unit));
    }
  for (int step = 0; step < ring.size - 1; ++step) {
    const Units own = mine((ring.at - step - 2 + 2 * ring.size) % ring.size);
    const bool is_last = step == ring.size - 2 && !target.empty();
    Units arrived, sums;
    for (std::size_t i = 0; i < own.size(); ++i) {
      arrived.push_back(b.as(came[step % 2][i], own[i]));
      sums.push_back(is_last ? target[i] : b.as(partial[step % 2][i], own[i]));
    }
    b.send(ring.right, travels);
    b.recv(ring.left, arrived);
    for (std::size_t i = 0; i < own.size(); ++i) b.reduce({arrived[i], own[i]}, sums[i]);
    travels = sums;
  }
  return travels;
}

void build(const Problem& pb, const Knobs&, Builder& b) {
  const Lanes lanes(pb);
  const int k = lanes.nodes(), g = lanes.count(), node = lanes.node(), lane = lanes.lane();
  const Ring mates{g, lane, lanes.rank_of(node, (lane + g - 1) % g),
                   lanes.rank_of(node, (lane + 1) % g)};
  const Ring twins{k, node, lanes.rank_of((node + k - 1) % k, lane),
                   lanes.rank_of((node + 1) % k, lane)};
  const Units here = round_ring(b, mates, [&](int of_lane) {
    Units units;
    for (int to = 0; to < k; ++to) units.push_back(b.input(lanes.rank_of(to, of_lane)));
    return units;
  });
  const Segment output = b.output(pb.rank);
  const Units sum = round_ring(
      b, twins, [&](int to) { return Units{here[static_cast<std::size_t>(to)]}; }, {output});
  b.copy(sum[0], output);   // nothing where it is there
  b.finish(output);
}

Cost cost(const Problem& pb, const Knobs&) {
  const Lanes lanes(pb);
  const double k = lanes.nodes(), g = lanes.count();
  return {.rounds = (k - 1) * g, .volume = (k - 1) / k, .reduced = 1 - 1 / (g * k),
          .near_rounds = g - 1, .near_volume = (g - 1) / g};
}

}  // namespace

const Algorithm reduce_scatter_lanes{.collective = Collective::reduce_scatter, .name = "lanes",
                                     .rejects = rejects, .cuts = cuts, .build = build,
                                     .cost = cost, .grouped = true};

}  // namespace paceline
