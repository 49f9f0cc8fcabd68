// Multi-lane allgather: leaders bring their part of the units from other nodes, and all read it.
//
// Source   J. L. Träff, S. Hunold: Decomposing collectives for exploiting multi-lane communication.
//          arXiv 1910.13373; here with load/store inside the node.
// Needs    k nodes, of which the smallest has g ranks and the largest m, any of each in any order.
//          Any counts, zero among them.
// Cost     across (k-1) g alpha + (1 - g/p) n beta at the port of a node; inside it two meetings,
//          and read from others (m-1)/p n and, of the other (1 - m/p) n, all but the own part;
//          by messages 2 (m-1) alpha + ((m-1)/p + (m-1)/g (1 - m/p)) n beta
// Scratch  staging buffer: a unit, and n/g. By messages: none.
// When     medium and long messages, several ranks on some of several nodes.
// Order    moves data only.
//
// p = 5, nodes 012 and 34, units A to E.
//             rank 0      rank 1      rank 2      rank 3      rank 4
//   start     A           B           C           D           E
//   read      A B C       A B C       A B C       D E         D E
//   across    A B C D     A B C E     A B C       A C D E     B D E
//   read      A B C D E   A B C D E   A B C D E   A B C D E   A B C D E
#include "coll/in_node.hpp"
#include "ir/algorithm.hpp"

namespace paceline {
namespace {

using Units = std::vector<Segment>;

// Unit i of what a part brings from other nodes, in the leader's staging buffer.
struct Brought {
  std::vector<int> units;
  Units slots;
  Segment at(const Builder& b, std::size_t i) const {
    return Builder::as(slots[i], b.output(units[i]));
  }
};

void go_round(Builder& b, const Hierarchy& h, int part) {
  const int k = h.nodes(), node = h.node();
  const auto units = [&](int of) {
    Units all;
    for (int unit : h.units((of + k) % k, part)) all.push_back(b.output(unit));
    return all;
  };
  for (int step = 0; step < k - 1; ++step) {
    b.send(h.leader_of((node + 1) % k, part), units(node - step));
    b.recv(h.leader_of((node + k - 1) % k, part), units(node - step - 1));
  }
}

void by_messages(Builder& b, const Hierarchy& h) {
  const int rank = b.problem().rank;
  const std::vector<int> others = h.others();
  b.copy(b.input(rank), b.output(rank));
  for (int mate : others) b.send(mate, {b.output(rank)});
  for (auto mate = others.rbegin(); mate != others.rend(); ++mate)
    b.recv(*mate, {b.output(*mate)});
  if (h.nodes() == 1) return;
  if (h.part() >= 0) go_round(b, h, h.part());
  tell_parts(b, h, [&](int part) {
    Units brought;
    for (int node = 0; node < h.nodes(); ++node)
      if (node != h.node())
        for (int unit : h.units(node, part)) brought.push_back(b.output(unit));
    return brought;
  });
}

void build(const Problem& pb, const Knobs&, Builder& b) {
  const Hierarchy h(pb);
  if (!h.stages()) return by_messages(b, h);
  const int r = pb.rank, part = h.part();
  const Segment own = b.staging(b.output(0));
  // As many slots on every rank as any leader may need.
  const std::size_t most = std::size_t((pb.ranks + h.leaders() - 1) / h.leaders() + h.nodes());
  Units slots;
  for (std::size_t i = 0; i < most && h.nodes() > 1; ++i) slots.push_back(b.staging(b.output(0)));
  const auto brought = [&](int of_part) {
    Brought all{{}, slots};
    for (int node = 0; node < h.nodes(); ++node)
      if (node != h.node())
        for (int unit : h.units(node, of_part)) all.units.push_back(unit);
    return all;
  };
  b.copy(b.input(r), b.output(r));
  const bool is_alone = h.mates().size() == 1;
  if (!is_alone) {
    b.copy(b.input(r), Builder::as(own, b.output(r)));
    h.signal_mates(b);
    h.wait_for_mates(b);
    for (int mate : h.others())
      b.copy(b.of_peer(mate, Builder::as(own, b.output(mate))), b.output(mate));
  }
  if (part >= 0) go_round(b, h, part);
  if (is_alone) return;
  if (part >= 0) {
    const Brought mine = brought(part);
    for (std::size_t i = 0; i < mine.units.size(); ++i)
      b.copy(b.output(mine.units[i]), mine.at(b, i));
  }
  h.signal_mates(b);
  h.wait_for_mates(b);
  for (int other = 0; other < h.leaders(); ++other) {
    if (other == part) continue;
    const Brought theirs = brought(other);
    for (std::size_t i = 0; i < theirs.units.size(); ++i)
      b.copy(b.of_peer(h.leader(other), theirs.at(b, i)), b.output(theirs.units[i]));
  }
}

Cost cost(const Problem& pb, const Knobs&) {
  const Hierarchy h(pb);
  const double k = h.nodes(), g = h.leaders(), m = h.most_ranks(), p = pb.ranks;
  Cost cost{.rounds = (k - 1) * g, .volume = k > 1 ? 1 - h.least_ranks() / p : 0, .reduced = 0};
  if (m == 1) return cost;
  const double parts = h.stages() ? (m > g ? 1 : (g - 1) / g) : (m - 1) / g;
  cost.near_rounds = h.stages() ? 2 : k > 1 ? 2 * (m - 1) : m - 1;
  cost.near_volume = (m - 1) / p + (1 - m / p) * parts;
  return cost;
}

}  // namespace

extern const Algorithm allgather_multilane{
    .collective = Collective::allgather, .name = "multilane", .build = build, .cost = cost,
    .access = Access::nodes};

}  // namespace paceline
