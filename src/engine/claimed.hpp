// ClaimedOperation: executes a load/store schedule whose positions the ranks of a node take as they
// enter the call; or, depending on earlier calls, the usual schedule instead
// (CompiledSchedule::by_arrival), in which positions are ranks.
//
// It has the schedule of every position ready. A rank that enters a call takes a position and runs
// its schedule. The peers are positions; the array of claims gives their ranks once those have
// come.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "arrival/entries.hpp"
#include "engine/shm/load_store.hpp"
#include "engine/shm/positions.hpp"

namespace paceline {

class ClaimedOperation : public Operation {
 public:
  ClaimedOperation(std::shared_ptr<const CompiledSchedule> bound, const Channel& channel);

  std::size_t scratch_bytes() const override;
  std::size_t staging_bytes() const override {
    return std::max(compiled_->scratch_bytes, claimed_->scratch_bytes);
  }
  bool is_load_store() const override { return true; }
  bool advance(Transport& transport) override;
  std::vector<int> waits_for() const override;
  bool can_progress() override;

 private:
  void begin() override;
  void cancel(Transport& transport) override;
  bool decide();
  NodeEntries node_entries() const;
  EntryBook& entry_book() const;   // of the call's channel
  bool enter();
  // True if a peer prevents deciding, or entering: one that is not there yet or is in another call.
  bool is_behind();
  bool is_occupied();
  bool keeps(std::optional<int> peer, const std::optional<CallMismatch>& mismatch);
  void meet(std::optional<CallMismatch> mismatch);   // ranks as numbered by staging buffers
  void take_up();   // the schedule of the position taken
  std::size_t slot_bytes() const { return (claims_ ? *claimed_ : *compiled_).scratch_bytes; }

  ShmChannel* shm_;   // of the call
  std::shared_ptr<const CompiledSchedule> claimed_;
  Positions positions_;
  std::vector<std::unique_ptr<LoadStoreOperation>> at_;   // by position
  std::unique_ptr<LoadStoreOperation> usual_;    // null: it always claims
  LoadStoreOperation* now_ = nullptr;            // of the position taken
  std::uint64_t call_ = 0;
  int waits_for_ = -1;   // a rank of the node, before this one enters
  bool decided_ = false, claims_ = true;
  Fingerprint shown_;      // shown to peers: the call's, changed if it goes by arrival
  double arrived_s_ = 0;   // when this rank was ready to enter
};

}  // namespace paceline
