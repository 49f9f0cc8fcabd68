// Groups: equally many ranks in each, as a table with a row for each group and, in it, its ranks in
// order. Two ranks of different groups that stand in the same column are counterparts.
#pragma once

#include <algorithm>
#include <vector>

namespace paceline {

class Groups {
 public:
  // `group_of`: the group of each rank, from 0 on; empty: they are all in one.
  Groups(int ranks, const std::vector<int>& group_of)
      : group_of_(group_of.empty() ? std::vector<int>(static_cast<std::size_t>(ranks), 0)
                                   : group_of),
        rows_(static_cast<std::size_t>(*std::max_element(group_of_.begin(), group_of_.end())) + 1) {
    for (int rank = 0; rank < ranks; ++rank) {
      std::vector<int>& row = rows_[static_cast<std::size_t>(group_of_[std::size_t(rank)])];
      index_.push_back(static_cast<int>(row.size()));
      row.push_back(rank);
    }
  }

  int count() const { return static_cast<int>(rows_.size()); }
  int size() const { return static_cast<int>(rows_[0].size()); }   // of each
  int group_of(int rank) const { return group_of_[static_cast<std::size_t>(rank)]; }
  int index_of(int rank) const { return index_[static_cast<std::size_t>(rank)]; }
  int member(int group, int index) const {
    return rows_[static_cast<std::size_t>(group)][static_cast<std::size_t>(index)];
  }
  // Whether going through one group after the other is going through the ranks in order.
  bool keep_order() const { return std::is_sorted(group_of_.begin(), group_of_.end()); }

 private:
  std::vector<int> group_of_, index_;
  std::vector<std::vector<int>> rows_;
};

}  // namespace paceline
