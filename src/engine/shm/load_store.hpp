// Load/store: the reading of a schedule whose ranks share memory (ir/load_store.hpp). Step by step
// in the author's order, with nothing between the processor and the memory: a signal is a store, a
// wait is a load until it shows, scratch is the rank's stage.
//
// Steps that pass the same data on go together: a sum, its division and its copies leave the
// registers once; where they go past the caches, in strips that stay in the nearest one till then.
#pragma once

#include <vector>

#include "engine/shm/single_copy.hpp"
#include "engine/operation.hpp"

namespace paceline {

class Positions;   // engine/claimed.hpp

class LoadStoreOperation : public Operation {
 public:
  // `positions`: where its peers are positions, of a call that was entered when this starts.
  LoadStoreOperation(std::shared_ptr<const CompiledSchedule> bound, const Channel& channel,
                    Positions* positions = nullptr);

  std::size_t scratch_bytes() const override { return 0; }   // the staging buffer has it
  std::size_t staging_bytes() const override { return room_bytes_; }
  bool is_load_store() const override { return true; }
  bool is_brief() const override { return is_brief_; }
  bool advance(Transport& transport) override;
  std::vector<int> waits_for() const override;
  bool can_progress() override;

 private:
  // Signals that follow each other are one, of so many given so far; a wait wants so many of the
  // peer at a position; work is the steps [first, last), or one copy from or to the peer there.
  struct Item {
    Kind kind = Kind::copy;
    std::uint32_t first = 0, last = 0;
    int position = -1;
    std::uint32_t signals = 0;
    std::uint32_t bytes = 0;       // of work: of its first step, or the most that fits here
    const Stretch* only = nullptr;   // work that is one stretch of one step, to be done as it is
    bool interleaved = false;              // long, and from peers: several streams at a time
  };

  struct Strip {                 // of a stretch of the first step, and of those that go with it
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
  bool cross(const Item& item);
  int crosses_to(const Step& step) const;   // the peer whose buffer it has the system copy, or none
  void note(const Item& item);   // in the record of what was done when
  bool is_one(const Item& item) const;
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
  bool streams(const Place& place) const;

  ShmChannel* shm_;              // of the call
  Positions* positions_;         // null: ranks are their own
  Attached attached_;            // where the schedule says so
  std::vector<Item> items_;
  mutable std::vector<void*> targets_;   // of the steps that are done just now
  std::size_t room_bytes_;
  std::uint32_t signals_ = 0;    // given in all
  bool swaps_;                   // both of two ranks show and take
  bool one_shows_;               // and the other one of two takes
  bool is_brief_;                // some microseconds of work
  bool is_long_;                 // too much for the caches: what nobody reads soon goes past them
  bool is_shown_far_ = false;    // what is shown goes past them as well
  std::uint64_t call_ = 0;
  bool entered_ = false;
  std::size_t next_ = 0;
  int waits_for_ = -1;           // a position
  double begun_s_ = 0;
  bool begun_ = false;
};

}  // namespace paceline
