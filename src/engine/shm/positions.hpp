// Positions: which rank of the node has taken which position of a schedule, in the current call.
#pragma once

#include <optional>
#include <vector>

#include "engine/shm/shm_channel.hpp"

namespace paceline {

class Positions {
 public:
  Positions(ShmChannel& shm, int ranks) : shm_(&shm), ranks_(std::size_t(ranks), -1) {}

  void begin(ShmChannel& shm, std::uint64_t call) {
    shm_ = &shm;
    call_ = call;
    are_ranks_ = false;
    for (int& rank : ranks_) rank = -1;
  }
  void begin_as_ranks(ShmChannel& shm, std::uint64_t call) {
    shm_ = &shm;
    call_ = call;
    are_ranks_ = true;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) ranks_[rank] = static_cast<int>(rank);
  }
  bool are_ranks() const { return are_ranks_; }
  // Sets the clock for calls that record when this rank leaves them.
  void set_clock(double (*now_s)()) { now_s_ = now_s; }
  void leave() {
    if (now_s_) shm_->entry_book().leave(*shm_, now_s_());
  }
  ShmChannel& shm() const { return *shm_; }
  std::uint64_t call() const { return call_; }   // in that channel
  // Rank at a position; -1: unclaimed.
  int rank_at(int position) {
    int& rank = ranks_[static_cast<std::size_t>(position)];
    if (rank < 0) rank = shm_->rank_at(position, call_);
    return rank;
  }
  std::vector<int> missing();   // ranks without a position
  // Call it while a position is unclaimed: finds a peer that is in another call and will not come.
  std::optional<CallMismatch> mismatch();

 private:
  ShmChannel* shm_;   // of the call
  std::uint64_t call_ = 0;
  std::vector<int> ranks_;   // by position
  bool are_ranks_ = false;
  double (*now_s_)() = nullptr;
  int looks_ = 0;            // for mismatches
};

}  // namespace paceline
