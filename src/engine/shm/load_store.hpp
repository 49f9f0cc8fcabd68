// LoadStoreOperation: executes a schedule whose ranks share memory (ir/load_store.hpp), step by
// step in the author's order. A signal is a store, a wait polls a flag, and scratch is a slot of a
// staging buffer ("stage", engine/shm/shm_channel.hpp). A rank shows data by a copy into that slot,
// which its peers read.
//
// Steps that pass the same data on are fused: a sum, its division and its copies leave the
// registers once. Results of non-temporal stores are computed in strips that stay in the nearest
// cache until they are stored.
#pragma once

#include <vector>

#include "engine/shm/single_copy.hpp"
#include "engine/operation.hpp"

namespace paceline {

class Positions;   // engine/shm/positions.hpp

class LoadStoreOperation : public Operation {
 public:
  // `positions`: of a call whose peers are positions, and which was entered before this starts.
  LoadStoreOperation(std::shared_ptr<const CompiledSchedule> bound, const Channel& channel,
                    Positions* positions = nullptr);

  // The staging buffer has the schedule's.
  std::size_t scratch_bytes() const override { return compiled_->aside_bytes; }
  std::size_t staging_bytes() const override { return slot_bytes_; }
  bool is_load_store() const override { return true; }
  bool sends_as_well() const override { return sends_as_well_; }
  bool is_brief() const override { return is_brief_; }
  bool advance(Transport& transport) override;
  std::vector<int> waits_for() const override;
  bool can_progress() override;

 private:
  // Steps that are executed together: consecutive signals, a wait, a single copy from or to a
  // peer's buffer, or work: one step, or several fused ones.
  struct Item {
    Kind kind = Kind::copy;        // of its first step
    std::uint32_t first = 0, last = 0;   // steps [first, last)
    int position = -1;             // peer of a wait or of a single copy
    std::uint32_t signals = 0;     // number given by this rank so far, or awaited from the peer
    std::uint32_t bytes = 0;       // of its first step, if that moves data; capped
    const Stretch* only = nullptr;   // set for one stretch of one step, with plain stores
    bool interleaved = false;      // long, and from peers (engine/shm/interleaved.hpp)
    const UnevenCopy* uneven = nullptr;
  };

  struct Strip {                 // part of a stretch of an item's steps
    std::uint32_t stretch = 0;
    std::size_t offset = 0, bytes = 0;
  };

  void find_interleaved();
  void begin() override;
  void cancel(Transport&) override;
  std::byte* scratch_of(int position) const override;
  int peer_of(int position) const override;
  int named(int position) const;   // rank at a position; -1: not come yet
  std::vector<int> awaited_at(int position) const;
  std::byte* where(const Place& place) const;

  bool enter();
  bool wait(const Item& item);
  bool do_step(const Item& item, Transport& transport);   // returns false if it has to wait
  bool copy_singly(const Item& item);
  bool copy_uneven(const UnevenCopy& copy);
  bool has_sent(Transport& transport);   // true once all messages have ended
  void begin_uneven(Transport& transport);
  void send_instead(int position, Transport& transport);
  void begin_message(Transfer& message, int position, int seq, const Part& part, bool sends,
                     Transport& transport);
  int single_copy_peer(const Step& step) const;   // peer of a single copy; kOwn: the step is none
  void note(const Item& item);   // records the times of its steps
  bool is_one_step(const Item& item) const;
  bool is_plain(const Item& item) const;
  void work(const Item& item);
  void combine_only(const Item& item) const;
  void interleave(int targets, int sources, std::size_t bytes, int divisor) const;
  bool is_reduce_copy(const Item& item) const;
  void reduce_copy(const Item& item);
  void copy_in_nontemporal(const CompiledStep& step) const;
  bool is_shown(const CompiledStep& step) const;
  void show(const CompiledStep& step);
  void run_fused(const Item& item);
  std::byte* make(const CompiledStep& step, const Strip& strip, std::byte* aside) const;
  void store_result(const CompiledStep& step, const Strip& strip, std::byte* made) const;
  const Place* places_of(const CompiledStep& step, const Strip& strip) const;
  std::byte* target_of(const CompiledStep& step, const Strip& strip) const;
  bool fuse_together(std::uint32_t first, std::uint32_t next) const;
  bool is_nontemporal(const Place& target) const;

  ShmChannel* shm_;              // channel of the call
  Positions* positions_;         // null: positions are ranks
  Attached attached_;            // used by schedules with single copies
  // Messages in place of refused copies, by position, or one for each UnevenCopy.
  std::vector<Transfer> sent_;
  std::byte* aside_ = nullptr;   // UnevenCopy::aside
  std::vector<Item> items_;
  mutable std::vector<void*> targets_;   // of the current item, as sources_
  std::size_t slot_bytes_;       // of the call's slot in the stage
  std::uint32_t signals_ = 0;    // total of a call
  bool swaps_;                   // there are two ranks, and both show and read (ShmChannel::enter)
  bool one_shows_;               // there are two ranks: one shows, the other reads
  bool is_brief_;                // some microseconds of work
  bool sends_as_well_ = false;
  bool is_long_;                 // too long for the caches: outputs take non-temporal stores
  bool shows_past_caches_ = false;   // the current item shows data by non-temporal stores
  std::uint64_t call_ = 0;
  bool entered_ = false;
  std::size_t next_ = 0;         // current item; past the last one: messages are under way
  int waits_for_ = -1;           // position; -1: none
  double begun_s_ = 0;
  bool begun_ = false;
};

}  // namespace paceline
