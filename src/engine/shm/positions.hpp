// Positions: which rank of the node has taken which position of a schedule, in the current call.
#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "arrival/claims.hpp"
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
  // Takes the next free position of the call, which was entered. A peer that waits for positions
  // reads this rank's stamp.
  int take() {
    shm_->announce(call_);
    const int position = claims::take(claimed(), call_);
    claims::publish(claimed(), call_, position, shm_->rank());
    return position;
  }
  // Sets the function that leave() calls, just before this rank leaves the call.
  void before_leaving(std::function<void()> hook) { hook_ = std::move(hook); }
  void leave() const {
    if (hook_) hook_();
  }
  ShmChannel& shm() const { return *shm_; }
  std::uint64_t call() const { return call_; }   // in that channel
  // Rank at a position; -1: unclaimed.
  int rank_at(int position) {
    int& rank = ranks_[static_cast<std::size_t>(position)];
    if (rank < 0) rank = claims::rank_at(claimed(), call_, position);
    return rank;
  }
  std::vector<int> missing();   // ranks without a position
  // Call it while a position is unclaimed: finds a peer that is in another call and will not come.
  std::optional<CallMismatch> mismatch();

 private:
  StageClaims& claimed() const { return shm_->stage(0).claims(); }   // at the first rank

  ShmChannel* shm_;   // of the call
  std::uint64_t call_ = 0;
  std::vector<int> ranks_;   // by position
  bool are_ranks_ = false;
  std::function<void()> hook_;
  int looks_ = 0;            // for mismatches
};

}  // namespace paceline
