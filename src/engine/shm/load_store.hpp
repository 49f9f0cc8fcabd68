// Executes a schedule whose ranks share memory (ir/load_store.hpp), step by step in the author's
// order: a signal is a store, a wait polls a flag, scratch is a slot of a staging buffer ("stage",
// engine/shm/shm_channel.hpp). To show something is to copy it into that slot, for peers to read.
//
// Steps that pass the same data on are fused: a sum, its division and its copies leave the
// registers once. Where results go past the caches (non-temporal stores), they are made in strips
// that stay in the nearest cache till then.
#pragma once

#include <vector>

#include "engine/shm/single_copy.hpp"
#include "engine/operation.hpp"

namespace paceline {

class Positions;   // engine/shm/positions.hpp

class LoadStoreOperation : public Operation {
 public:
  // `positions`: where its peers are positions, of a call that was entered when this starts.
  LoadStoreOperation(std::shared_ptr<const CompiledSchedule> bound, const Channel& channel,
                    Positions* positions = nullptr);

  std::size_t scratch_bytes() const override { return 0; }   // the staging buffer has it
  std::size_t staging_bytes() const override { return slot_bytes_; }
  bool is_load_store() const override { return true; }
  bool is_brief() const override { return is_brief_; }
  bool advance(Transport& transport) override;
  std::vector<int> waits_for() const override;
  bool can_progress() override;

 private:
  // What is done at once: signals that follow each other, a wait, a single copy from or to a peer's
  // buffer, or work: steps that are fused, or one.
  struct Item {
    Kind kind = Kind::copy;        // of its first step
    std::uint32_t first = 0, last = 0;   // steps [first, last)
    int position = -1;             // the peer of a wait or of a single copy
    std::uint32_t signals = 0;     // that this rank has given by then, or waits for from the peer
    std::uint32_t bytes = 0;       // of its first step, if that moves data; capped
    const Stretch* only = nullptr;   // work that is one stretch of one step, with plain stores
    bool interleaved = false;      // long, and from peers (engine/shm/interleaved.hpp)
  };

  struct Strip {                 // of a stretch of an item's first step, and of those fused with it
    std::uint32_t stretch = 0;
    std::size_t offset = 0, bytes = 0;
  };

  void find_interleaved();
  void begin() override;
  void cancel(Transport&) override;
  std::byte* scratch_of(int position) const override;
  int peer_of(int position) const override;
  int named(int position) const;   // the rank of the communicator there; -1: not come yet
  std::vector<int> awaited_at(int position) const;
  std::byte* where(const Place& place) const;

  bool enter();
  bool wait(const Item& item);
  bool do_step(const Item& item, Transport& transport);   // false: not yet
  bool copy_singly(const Item& item);
  int single_copy_peer(const Step& step) const;   // whose buffer the system copies; kOwn: nobody's
  void note(const Item& item);   // in the record of what was done when
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
  void run_fused(const Item& item);   // in strips
  std::byte* make(const CompiledStep& step, const Strip& strip, std::byte* aside) const;
  void store_result(const CompiledStep& step, const Strip& strip, std::byte* made) const;
  const Place* places_of(const CompiledStep& step, const Strip& strip) const;
  std::byte* target_of(const CompiledStep& step, const Strip& strip) const;
  bool fuse_together(std::uint32_t first, std::uint32_t next) const;
  bool is_nontemporal(const Place& target) const;

  ShmChannel* shm_;              // of the call
  Positions* positions_;         // null: ranks are their own
  Attached attached_;            // where the schedule says so
  std::vector<Item> items_;
  mutable std::vector<void*> targets_;   // of the item that is worked on, as sources_ are
  std::size_t slot_bytes_;       // of its scratch, in the stage
  std::uint32_t signals_ = 0;    // given in all
  bool swaps_;                   // there are two ranks, and both show and read (ShmChannel::enter)
  bool one_shows_;               // there are two ranks: one shows, the other reads
  bool is_brief_;                // some microseconds of work
  bool is_long_;                 // too much for the caches: outputs are written past them
  bool shows_past_caches_ = false;   // in the item that is worked on
  std::uint64_t call_ = 0;
  bool entered_ = false;
  std::size_t next_ = 0;
  int waits_for_ = -1;           // a position
  double begun_s_ = 0;
  bool begun_ = false;
};

}  // namespace paceline
