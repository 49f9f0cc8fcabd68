// Hierarchy: the nodes of a problem (Problem::nodes) and their leaders. A node has as many leaders
// as the algorithm wants, at most the ranks of the smallest node; each takes its part of the
// message across, with the leaders of the same part on the other nodes. Inside nodes ranks read
// each other's staging buffers or, if there are none, send messages. A node with a late rank is
// late.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "coll/shared.hpp"
#include "ir/compose.hpp"

namespace paceline {

class Hierarchy {
 public:
  static constexpr int kAsMany = 1 << 30;   // as there are ranks on the smallest node

  explicit Hierarchy(const Problem& pb, int most_leaders = kAsMany)
      : rank_(pb.rank), stages_(stages_in_nodes(pb)) {
    for (int rank = 0; rank < pb.ranks; ++rank) {
      const auto node = std::size_t(pb.nodes.empty() ? 0 : pb.nodes[std::size_t(rank)]);
      if (ranks_.size() <= node) ranks_.resize(node + 1);
      if (rank == rank_) node_ = static_cast<int>(node);
      ranks_[node].push_back(rank);
    }
    leaders_ = most_leaders;
    for (const std::vector<int>& ranks : ranks_)
      leaders_ = std::min(leaders_, static_cast<int>(ranks.size()));
    if (has_root(pb.collective)) lead(pb.root);
    for (int rank : pb.late) {
      const int node = node_of(rank);
      std::erase(late_, node);   // it is as late as its latest rank
      late_.push_back(node);
    }
  }

  static Hierarchy by_parts(const Problem& pb) { return Hierarchy(pb); }
  static Hierarchy by_one_leader(const Problem& pb) { return Hierarchy(pb, 1); }
  // A node's sum is its ranks' values from left to right, in memory and by messages alike.
  static Hierarchy in_rank_order(const Problem& pb) {
    Hierarchy h(pb);
    h.takes_trees_ = false;
    return h;
  }
  // The same without staging buffers, which take a long message in segments, a few at a time: all
  // messages are to be on their way before the last rank comes.
  static Hierarchy by_messages(const Problem& pb) {
    Problem without = pb;
    without.node_staging = false;
    return in_rank_order(without);
  }

  // Messages inside nodes, but a node's sum is what it would be with staging buffers, if it has
  // them.
  static Hierarchy as_staged(const Problem& pb) {
    Hierarchy h(pb);
    h.takes_trees_ = h.by_trees();
    h.stages_ = false;
    return h;
  }

  bool stages() const { return stages_; }   // false: messages inside nodes
  bool by_trees() const { return !stages_ && leaders_ == 1 && takes_trees_; }   // trees carry them
  int nodes() const { return static_cast<int>(ranks_.size()); }
  int leaders() const { return leaders_; }   // of each node
  int node_of(int rank) const {
    for (int node = 0; node < nodes(); ++node)
      if (std::count(ranks_[std::size_t(node)].begin(), ranks_[std::size_t(node)].end(), rank))
        return node;
    return -1;
  }
  int most_ranks() const {   // of any node
    std::size_t most = 0;
    for (const std::vector<int>& ranks : ranks_) most = std::max(most, ranks.size());
    return static_cast<int>(most);
  }
  bool is_in_order() const {   // ranks ascend node by node
    int last = -1;
    for (const std::vector<int>& ranks : ranks_)
      for (int rank : ranks) {
        if (rank < last) return false;
        last = rank;
      }
    return true;
  }

  // The ranks of the own node, in order, with the own one among them.
  const std::vector<int>& mates() const { return ranks_[std::size_t(node_)]; }
  int leader_of(int node, int part = 0) const {
    const std::vector<int>& ranks = ranks_[std::size_t(node)];
    return part == 0 && leads_ >= 0 && node == leads_node_ ? leads_ : ranks[std::size_t(part)];
  }
  int leader(int part = 0) const { return leader_of(node_, part); }
  int part() const { return part_led_by(rank_); }   // that this rank takes across; -1: none
  int part_led_by(int mate) const {
    for (int part = 0; part < leaders_; ++part)
      if (leader(part) == mate) return part;
    return -1;
  }
  int index_of_leader() const {   // of the first part, among its node's ranks
    const auto at = std::find(mates().begin(), mates().end(), leader());
    return static_cast<int>(at - mates().begin());
  }
  // Leaders that take a part across, by node.
  std::vector<int> across(int part = 0) const {
    std::vector<int> all;
    for (int node = 0; node < nodes(); ++node) all.push_back(leader_of(node, part));
    return all;
  }

  // Units of a node's ranks in one part, dealt out by turns, if units belong to ranks.
  std::vector<int> units(int node, int part) const {
    std::vector<int> all;
    const std::vector<int>& ranks = ranks_[std::size_t(node)];
    for (std::size_t i = std::size_t(part); i < ranks.size(); i += std::size_t(leaders_))
      all.push_back(ranks[i]);
    return all;
  }
  int part_of(int rank) const {
    const std::vector<int>& ranks = ranks_[std::size_t(node_of(rank))];
    const auto at = std::find(ranks.begin(), ranks.end(), rank) - ranks.begin();
    return static_cast<int>(at) % leaders_;
  }
  int node() const { return node_; }
  const std::vector<int>& late() const { return late_; }   // nodes, the latest one last
  int least_ranks() const {   // of any node
    std::size_t least = ranks_[0].size();
    for (const std::vector<int>& ranks : ranks_) least = std::min(least, ranks.size());
    return static_cast<int>(least);
  }

  // Signals and waits among the ranks of the node.
  void signal_mates(Builder& b) const {
    for (int mate : others()) b.signal(mate);
  }
  void wait_for_mates(Builder& b) const {
    for (int mate : others()) b.wait(mate);
  }
  // The other ranks of the node, from the next one on, so that not all ask the same.
  std::vector<int> others() const {
    std::vector<int> all = mates();
    const auto own = std::find(all.begin(), all.end(), rank_);
    std::rotate(all.begin(), own, all.end());
    all.erase(all.begin());
    return all;
  }
  // True if a sum of the node takes several steps, which overwrite the target before the own
  // operand is read: then that is shown as well.
  bool sums_in_steps() const { return static_cast<int>(mates().size()) > kSourcesAtOnce; }

  // Segments that all ranks of the node show at this place, in rank order; this rank's is `mine`.
  std::vector<Segment> of_mates(const Builder& b, const Segment& shown, const Segment& mine) const {
    std::vector<Segment> all;
    for (int mate : mates()) all.push_back(mate == rank_ ? mine : b.of_peer(mate, shown));
    return all;
  }

 private:
  void lead(int rank) {
    leads_ = rank;
    leads_node_ = node_of(rank);
  }

  int rank_;
  bool stages_, takes_trees_ = true;
  int node_ = 0, leaders_ = 1;
  int leads_ = -1, leads_node_ = -1;   // the root leads its node
  std::vector<int> late_;
  std::vector<std::vector<int>> ranks_;   // by node
};

// Operands stay in rank order if the ranks of a node are neighbours.
inline std::optional<Reason> unless_nodes_in_order(const Problem& pb) {
  if (pb.commutative || Hierarchy(pb).is_in_order()) return {};
  return Reason{"it sums node by node, and these ranks of a node are no neighbours", ""};
}

}  // namespace paceline
