// The chain along the order of arrival: each position adds its vector to the partial sum in the
// staging buffer of the position before it, block by block, and stores the result in its own. No
// slot is written twice in a call, so a rank may leave once it has stored its last block.
#pragma once

#include "coll/staged.hpp"

namespace paceline {

class ArrivalChain {
 public:
  ArrivalChain(Builder& b, int blocks)
      : b_(b), p_(b.problem().ranks), k_(b.problem().rank), blocks_(blocks),
        shown_(b.scratch(b.output())) {}

  int last() const { return p_ - 1; }
  Segment shown(int block) const { return Builder::part(shown_, block, 1); }

  // The positions before the last one: stores its partial sum, block by block.
  void pass_on() const {
    for (int turn = 0; turn < blocks_; ++turn) {
      const int block = block_at(turn, blocks_);
      if (k_ == 0) b_.copy(b_.input(block), shown(block));
      else add(block, shown(block));
      b_.signal(k_ + 1);
    }
  }
  // The last position: stores the complete sum of a block in `target`.
  void complete(int block, const Segment& target) const {
    if (p_ > 1) add(block, target);
    else b_.copy(b_.input(block), target);
    b_.finish(target);
  }
  // From the staging buffer of the last position.
  void copy_out() const {
    for (int turn = 0; turn < blocks_; ++turn) {
      const int block = block_at(turn, blocks_);
      b_.wait(last());
      b_.copy(b_.of_peer(last(), shown(block)), b_.output(block));
    }
  }

 private:
  void add(int block, const Segment& target) const {
    b_.wait(k_ - 1);
    b_.reduce({b_.of_peer(k_ - 1, shown(block)), b_.input(block)}, target);
  }

  Builder& b_;
  int p_, k_, blocks_;
  Segment shown_;
};

inline int cuts_of_blocks(const Problem&, const Knobs& knobs) { return blocks_of(knobs); }

}  // namespace paceline
