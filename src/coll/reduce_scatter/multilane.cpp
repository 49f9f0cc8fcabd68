// Multi-lane reduce_scatter: leaders sum their part of the units over the node, then over nodes.
//
// Source   J. L. Träff, S. Hunold: Decomposing collectives for exploiting multi-lane communication.
//          arXiv 1910.13373; here with load/store inside the node.
// Needs    commutative op; k nodes, of which the smallest has g ranks and the largest m, any of
//          each in any order. Any counts, zero among them.
// Cost     across (k-1) g alpha + (1 - g/p) n beta at the port of a node; inside it two meetings,
//          three where m > g, (m-1)/g n read from others and ((m-1) + (k-1)/k)/g n gamma; by
//          messages (m-1) alpha + (m-1)/g n beta, and a unit to each rank that leads nothing
// Scratch  staging buffer: n, and a unit for each rank that leads nothing; n/g more on leaders, and
//          4 n/(k g). By messages: m n/g more.
// When     medium and long messages, several ranks on some of several nodes.
// Order    rank order inside a node, then round the ring of the nodes: same bits in every run for
//          the same nodes.
//
// p = 5, nodes 012 and 34, units A to E; a digit is a contribution, * is final.
//             rank 0          rank 1      rank 2      rank 3          rank 4
//   sum       A012 C012 D012  B012 E012               A34  C34  D34   B34  E34
//   across    A*   C*         B*                      D*              E*
//   read      A*              B*          C*          D*              E*
#include <cmath>

#include "coll/in_node.hpp"
#include "coll/rejects.hpp"
#include "ir/algorithm.hpp"

namespace paceline {
namespace {

using Units = std::vector<Segment>;

std::optional<Reason> rejects(const Problem& pb) {
  return unless_commutative(pb, "a ring sums in ring order", "direct");
}

// A leader's sums over its node, by the rank that owns the unit, and then over the nodes.
class Leader {
 public:
  Leader(Builder& b, const Hierarchy& h, int part) : b_(b), h_(h), part_(part) {}

  // By messages, with the node's other ranks.
  static Units units_of(const Builder& b, const Hierarchy& h, int part) {
    Units units;
    for (int node = 0; node < h.nodes(); ++node)
      for (int unit : h.units(node, part)) units.push_back(b.input(unit));
    return units;
  }
  void sum_node() {
    const Units shapes = units_of(b_, h_, part_);
    Units sums;
    for (const Segment& shape : shapes) sums.push_back(b_.scratch(shape));
    sum_parts(b_, h_, [&](int part) { return units_of(b_, h_, part); }, sums);
    sums_.resize(std::size_t(b_.problem().ranks));
    for (std::size_t i = 0; i < sums.size(); ++i) sums_[std::size_t(shapes[i].first)] = sums[i];
  }

  void sum_node(const Segment& shown, bool shows_own) {
    sums_.resize(std::size_t(b_.problem().ranks));
    for (int node = 0; node < h_.nodes(); ++node)
      for (int unit : h_.units(node, part_)) {
        const Segment theirs = Builder::part(shown, b_.input(unit).first, b_.input(unit).blocks);
        const bool is_alone = h_.mates().size() == 1;
        if (is_alone) {
          sums_[std::size_t(unit)] = b_.input(unit);
          continue;
        }
        const Segment target = b_.scratch(b_.input(unit));
        sum(b_, h_.of_mates(b_, theirs, shows_own ? theirs : b_.input(unit)), target);
        sums_[std::size_t(unit)] = target;
      }
  }

  // Passes sums round the ring of the nodes; returns those of the own node's units.
  Units across() {
    const int k = h_.nodes(), node = h_.node();
    const auto mine = [&](int of) {
      Units units;
      for (int unit : h_.units((of % k + k) % k, part_)) units.push_back(sums_[std::size_t(unit)]);
      return units;
    };
    Units travels = mine(node - 1), came[2], partial[2];
    for (int step = 0; step < k - 1; ++step) {
      const Units own = mine(node - step - 2);
      Units arrived, sums;
      for (std::size_t i = 0; i < own.size(); ++i) {
        arrived.push_back(part_of(came[step % 2], i, own[i]));
        sums.push_back(part_of(partial[step % 2], i, own[i]));
      }
      b_.send(h_.leader_of((node + 1) % k, part_), travels);
      b_.recv(h_.leader_of((node + k - 1) % k, part_), arrived);
      for (std::size_t i = 0; i < own.size(); ++i) b_.reduce({arrived[i], own[i]}, sums[i]);
      travels = sums;
    }
    return travels;
  }

 private:
  Segment part_of(Units& slots, std::size_t i, const Segment& shape) {
    if (slots.size() == i) slots.push_back(b_.scratch(shape));
    return Builder::as(slots[i], shape);
  }

  Builder& b_;
  const Hierarchy& h_;
  int part_;
  Units sums_;
};

void by_messages(Builder& b, const Hierarchy& h) {
  const int rank = b.problem().rank, part = h.part();
  if (part < 0) {
    sum_parts(b, h, [&](int of) { return Leader::units_of(b, h, of); }, {});
    return b.recv(h.leader(h.part_of(rank)), {b.output(rank)});
  }
  Leader leader(b, h, part);
  leader.sum_node();
  const Units sums = leader.across();
  b.copy(sums[0], b.output(rank));
  b.finish(b.output(rank));
  const std::vector<int> units = h.units(h.node(), part);
  for (std::size_t i = 1; i < units.size(); ++i) {
    b.finish(sums[i]);
    b.send(units[i], {sums[i]});
  }
}

void build(const Problem& pb, const Knobs&, Builder& b) {
  const Hierarchy h(pb);
  if (!h.stages()) return by_messages(b, h);
  const int part = h.part(), r = pb.rank;
  const int passed = (h.most_ranks() - 1) / h.leaders();   // units that a leader has for others
  const Segment shown = b.staging(b.input());
  Units slots;
  for (int i = 0; i < passed; ++i) slots.push_back(b.staging(b.input(0)));
  const bool is_alone = h.mates().size() == 1, shows_all = part < 0 || h.sums_in_steps();
  for (int unit = 0; unit < pb.ranks && !is_alone; ++unit)
    if (shows_all || h.part_of(unit) != part)
      b.copy(b.input(unit), Builder::part(shown, b.input(unit).first, b.input(unit).blocks));
  const auto meet_mates = [&] {
    h.signal_mates(b);
    h.wait_for_mates(b);
  };
  if (!is_alone) meet_mates();
  const auto slot_of = [&](std::size_t i, int unit) {
    return Builder::as(slots[i - 1], b.input(unit));
  };
  const bool has_others = static_cast<int>(h.mates().size()) > h.leaders();
  if (part >= 0) {
    Leader leader(b, h, part);
    leader.sum_node(shown, shows_all);
    if (!is_alone) h.signal_mates(b);   // what they show has been read
    const Units sums = leader.across();
    b.copy(sums[0], b.output(r));
    b.finish(b.output(r));
    const std::vector<int> units = h.units(h.node(), part);
    for (std::size_t i = 1; i < units.size(); ++i) {
      b.copy(sums[i], slot_of(i, units[i]));
      b.finish(slot_of(i, units[i]));
    }
  } else {
    h.signal_mates(b);
  }
  if (is_alone) return;
  h.wait_for_mates(b);
  if (!has_others) return;
  meet_mates();
  if (part >= 0) return;
  const std::vector<int> units = h.units(h.node(), h.part_of(r));
  const auto at = std::size_t(std::find(units.begin(), units.end(), r) - units.begin());
  b.copy(b.of_peer(h.leader(h.part_of(r)), slot_of(at, r)), b.output(r));
}

Cost cost(const Problem& pb, const Knobs&) {
  const Hierarchy h(pb);
  const double k = h.nodes(), g = h.leaders(), m = h.most_ranks(), p = pb.ranks;
  Cost cost{.rounds = (k - 1) * g, .volume = k > 1 ? 1 - h.least_ranks() / p : 0,
            .reduced = ((m - 1) + (k - 1) / k) / g};
  if (m == 1) return cost;
  const double passed = std::floor((m - 1) / g);   // units that a leader has for others
  cost.near_rounds = !h.stages() ? m - 1 + passed : m > g ? 3 : 2;
  cost.near_volume = (m - 1) / g + (!h.stages() ? passed / p : m > g ? 1 / p : 0);
  return cost;
}

}  // namespace

extern const Algorithm reduce_scatter_multilane{
    .collective = Collective::reduce_scatter, .name = "multilane", .rejects = rejects,
    .build = build, .cost = cost, .access = Access::nodes};

}  // namespace paceline
