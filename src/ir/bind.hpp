// bind: turns a schedule that was built for positions into one for the ranks that stand there.
//
// If ranks are numbered in turn over the nodes, neighbours in rank order are on different nodes,
// and a chain or a ring of them crosses between nodes at every hop. A schedule that is built for
// positions and bound to ranks node by node crosses once for each node.
#pragma once

#include <vector>

#include "ir/algorithm.hpp"

namespace paceline {

// Rank at each position: node by node (Problem::nodes) or, if no nodes are known, by number.
class Order {
 public:
  explicit Order(const Problem& problem);
  explicit Order(std::vector<int> rank_at);   // by position, every rank once

  int rank_at(int position) const {   // from -p on, and around
    const int ranks = static_cast<int>(rank_at_.size());
    return rank_at_[static_cast<std::size_t>((position + ranks) % ranks)];
  }
  int position_of(int rank) const { return position_of_[static_cast<std::size_t>(rank)]; }

 private:
  std::vector<int> rank_at_, position_of_;
};

// True if positions serve as well as ranks: the message is one unit, so that no block belongs to a
// rank, and operands need not stay in rank order. An algorithm that looks at nodes, or at its
// peers' memory, knows its ranks itself.
bool is_bound(const Algorithm& algorithm, const Problem& problem);

// The problem that the rank solves at its position.
Problem at_position(const Problem& problem, const Order& order);

// The positions that ranks claim: the ranks by their arrival in seconds, those of one moment as
// they are numbered.
std::vector<int> claimed_order(const std::vector<double>& arrivals);

// The schedule of a position for its rank, whose problem this is.
Schedule bind(Schedule schedule, const Problem& problem, const Order& order);

}  // namespace paceline
