// MixedOperation: executes a schedule that sends messages between nodes and reaches staging buffers
// inside them, as one graph. A signal raises this rank's flag of the step's lane, a wait looks at a
// peer's flag, and scratch of the node's ranks is memory. The rest is engine/message_operation.hpp.
//
// Each rank runs such calls of a channel one after the other; data in staging buffers stays until
// all ranks of the node have left the call (engine/shm/shm_channel.hpp).
#pragma once

#include <vector>

#include "engine/message_operation.hpp"

namespace paceline {

class MixedOperation : public MessageOperation {
 public:
  MixedOperation(std::shared_ptr<const CompiledSchedule> bound, const Channel& channel);

  std::size_t staging_bytes() const override { return compiled_->staging_bytes; }
  bool advance(Transport& transport) override;
  std::vector<int> waits_for() const override;
  bool can_progress() override;

 private:
  void begin() override;
  void cancel(Transport& transport) override;
  void post(std::uint32_t step, Transport& transport) override;
  void end_all() override { has_ended_ = true; }   // done once the call is left
  std::byte* scratch_of(int position) const override;

  bool enter();
  bool look();   // looks at the awaited flags; returns true if one was raised
  bool is_raised(const Step& step);
  std::byte* notes_of(int position) const { return scratch_of(position) + compiled_->notes_at; }
  bool is_occupied();
  void meet(std::optional<CallMismatch> mismatch);   // whose position is a local rank
  int local_rank_of(int position) const { return local_ranks_[std::size_t(position)]; }
  int position_of(int local_rank) const;

  ShmChannel* shm_;                    // of the call
  std::vector<int> mates_;             // by local rank: ranks of the transport
  std::vector<int> local_ranks_;       // by position; -1: on another node
  std::vector<std::uint32_t> raised_;  // by lane: the own flag
  std::vector<std::uint32_t> waits_;   // steps under way
  std::uint64_t call_ = 0;
  bool entered_ = false, has_ended_ = false;
  int occupied_by_ = -1;               // position of a rank that has not left an earlier call
};

}  // namespace paceline
