// What algorithms have in common that know which ranks share a node (Problem::groups): every rank
// of a node has a lane, the part of the message that it takes across nodes with its twins, the
// ranks that stand where it does on the other nodes. Inside the node mates scatter and gather.
#pragma once

#include <vector>

#include "ir/compose.hpp"
#include "shapes/groups.hpp"

namespace paceline {

class Lanes {
 public:
  explicit Lanes(const Problem& pb)
      : nodes_(pb.ranks, pb.groups),
        node_(nodes_.group_of(pb.rank)),
        lane_(nodes_.index_of(pb.rank)) {}

  int nodes() const { return nodes_.count(); }
  int count() const { return nodes_.size(); }   // of lanes: the ranks of each node
  int node() const { return node_; }
  int lane() const { return lane_; }
  int node_of(int rank) const { return nodes_.group_of(rank); }
  int lane_of(int rank) const { return nodes_.index_of(rank); }
  int rank_of(int node, int lane) const { return nodes_.member(node, lane); }

  std::vector<int> mates() const {
    std::vector<int> all;
    for (int lane = 0; lane < count(); ++lane) all.push_back(rank_of(node_, lane));
    return all;
  }
  std::vector<int> twins() const {
    std::vector<int> all;
    for (int node = 0; node < nodes(); ++node) all.push_back(rank_of(node, lane_));
    return all;
  }

  // Of a region with as many equal parts as there are lanes, this rank's.
  Region own(const Region& all) const {
    const int blocks = all.blocks / count();
    return {all.space, all.first + lane_ * blocks, blocks, all.room};
  }

 private:
  Groups nodes_;
  int node_, lane_;
};

}  // namespace paceline
