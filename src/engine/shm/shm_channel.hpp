// ShmChannel: the staging buffers ("stages") of a communicator, as one of its ranks uses them.
//
// The calls of a channel run one after the other. A rank may begin the next call while its peers
// are still in the last one: the next call has the other of two flag lines, and another slot. A
// rank overwrites its data of two calls ago only when every peer has left that call.
//
// Slots rotate through the stage, since a cache line that a peer still caches is slow to write
// (docs/design/0019-straight.md). Short slots alternate between two fixed places instead, since
// lines in a rank's own cache are faster still. If two ranks both write a slot and read the peer's,
// they swap stages each round: a processor writes fastest into the lines that it has read last.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "engine/shm/call_stamp.hpp"
#include "engine/shm/shm_profile.hpp"
#include "transport/staging.hpp"

namespace paceline {

// A peer in another call than this rank, where both should be in the same.
struct CallMismatch {
  int position = 0;
  CallStamp mine, theirs;
};

class ShmChannel {
 public:
  // `ranks`: position -> rank of the transport.
  ShmChannel(StagingBuffers& stages, std::uint64_t context, const std::vector<int>& ranks,
             int rank, const ShmProfile& profile = shm_profile());
  const ShmProfile& profile() const { return profile_; }

  // Called before the first call, and before the first with so long a slot. Throws a resource
  // error.
  void open(std::size_t slot_bytes = 0);
  std::size_t bytes() const { return stages_.bytes(); }
  std::uint64_t enroll() { return ++enrolled_; }           // returns a call's place in the queue
  bool is_next(std::uint64_t call) const { return call == left_ + 1; }

  // Returns the first position whose rank may still read memory that `call` will overwrite;
  // nothing: the call may begin. Ranks that did not wait for each other find here a mismatch of
  // their calls. A slot that overlaps the last one is free when the last call has been left.
  std::optional<int> occupied(std::uint64_t call, std::size_t slot_bytes,
                              std::optional<CallMismatch>& mismatch) {
    const bool reuses_last = next_slot(slot_bytes).overlaps(slot_);
    const std::uint64_t before = call - (reuses_last ? 1 : 2);
    if (call <= 2 && before != 1) return {};   // there is no call `before`: they begin with 1
    return have_left(before) ? std::nullopt : find_occupied(before, mismatch);
  }
  // Like occupied(), for a call whose slot is not known yet: checks the call before the last one.
  std::optional<int> behind(std::uint64_t call, std::optional<CallMismatch>& mismatch) {
    if (call <= 2 || have_left(call - 2)) return {};
    return find_occupied(call - 2, mismatch);
  }
  // `swaps`: there are two ranks, both write a slot and read the peer's, and can_enter().
  void enter(std::uint64_t call, std::size_t slot_bytes, std::uint32_t number,
             const Fingerprint& fingerprint, bool swaps = false);
  // True if a call that swaps can write into the peer's stage, which it does every second round.
  bool can_enter(std::size_t slot_bytes, bool swaps) {
    return !swaps || !is_in_odd_round(slot_bytes) || reaches(1 - rank_, slot_bytes);
  }
  void signal(std::uint64_t call, std::uint32_t signals);   // `signals`: in this call so far
  // Leaves the call. Returns true if the flag line shows it. After a short call it does not, since
  // the store would cost as much as the call's own signal: peers learn it from the next call, or
  // when this rank waits for them.
  bool leave(std::uint64_t call);
  void leave_loudly(std::uint64_t call);   // the flag line shows it in any case

  // Shows the call's stamp before its first signal, unless it is shown.
  void announce(std::uint64_t call) {
    if (!shows_stamp_) signal(call, 0);
  }

  // For calls that also send messages (engine/mixed.hpp). A rank has a flag for each lane, which
  // counts its signals there.
  static constexpr int kLanes = StagingBuffer::kLines - 2;
  const std::vector<int>& members() const { return ranks_; }
  void raise(int lane, std::uint64_t call, std::uint32_t signals) {
    flag(own(), lane).store(turn_of(call, signals), std::memory_order_release);
  }
  bool is_raised(int position, int lane, std::uint64_t call, std::uint32_t signals) {
    const StagingBuffer& stage = at(position).stage;
    return (stage.memory || find(position)) &&
           flag(stage, lane).load(std::memory_order_acquire) >= turn_of(call, signals);
  }

  // True if the rank at a position has given so many signals in this call, or has left it.
  bool has_come(int position, std::uint64_t call, std::uint32_t signals) {
    announce(call);
    return look(position, call, turn_of(call, signals));
  }
  // Returns nothing if the rank at a position shows the same call as this rank, or a later one.
  std::optional<CallMismatch> mismatch(int position, std::uint64_t call) const {
    if (stamp_in(at(position).stage.line(call)) == stamps_[call % 4]) return {};
    return confirmed_mismatch(position, call);
  }
  std::optional<CallMismatch> find_mismatch(std::uint64_t call);   // checks peers in this call
  bool find(int position);   // true if the stage of the rank at a position is there
  const StagingBuffer& stage(int position) const { return at(position).stage; }   // once found
  // Slot of the rank at a position, in the call that was entered last.
  std::byte* slot(int position, std::uint64_t call) const {
    if (slot_.begin == kInLine) return at(position).stage.line(call).slot;
    return at(swapped_ ? 1 - position : position).stage.at(slot_.begin);
  }

  // Exported buffers of a call without scratch, in the 32 bytes beside its flag.
  ExportedBuffers& exported(int position, std::uint64_t call) const {
    return *reinterpret_cast<ExportedBuffers*>(at(position).stage.line(call).slot);
  }
  // True if a peer has signalled in this call, and has yet to leave it.
  bool is_inside(int position, std::uint64_t call) {
    look(position, call, turn_of(call, kLeft));
    const std::uint64_t seen = at(position).seen;
    return seen > turn_of(call, 0) && seen < turn_of(call, kLeft);
  }
  bool are_attached() const { return stages_.why_not_attached().empty(); }
  std::string describe_copies() const {
    return are_attached() ? std::string("by ") + stages_.attached_by()
                          : "not attached: " + stages_.why_not_attached();
  }
  int copy(PeerCopy wanted) {   // wanted.peer: a position
    wanted.peer = ranks_[static_cast<std::size_t>(wanted.peer)];
    return stages_.copy(wanted);
  }
  // Tells peers that this rank has opened its staging buffer of the second channel (ShmChannels).
  void show_second() { own().owner().has_second.store(true, std::memory_order_release); }
  bool shows_second(int position) const {
    const StagingBuffer& stage = at(position).stage;
    return stage.memory && stage.owner().has_second.load(std::memory_order_acquire);
  }
  bool has_ended(int position) const {
    return stages_.has_ended(ranks_[static_cast<std::size_t>(position)]);
  }
  int rank() const { return rank_; }
  int ranks() const { return static_cast<int>(peer_staging_.size()); }

  // True if writes into the stage should use non-temporal stores: for a while after plain stores
  // were slow, as they are if peers' caches are far. Each rank decides for itself. The caller
  // reports its writes, plain and non-temporal ones.
  bool is_far() const { return nontemporal_left_ > 0; }
  void wrote(std::size_t bytes, double seconds);
  void wrote_nontemporal(std::size_t bytes);

  // Error of this rank's last failure to map a peer's stage for a call.
  const std::optional<Error>& lacking() const { return lacking_; }
  bool is_called();        // true if a peer is in a call that this rank has yet to make
  std::optional<int> unseen();   // first position whose stage this rank has yet to find
  void look_around();            // finds peers' stages, for which their owners may wait
  bool is_idle() const { return enrolled_ == left_; }
  // Returns the ranks that have yet to find this rank's stage.
  std::vector<int> pending_attachers();
  // True if this rank has yet to find a peer's stage, for which its owner waits before it leaves.
  bool has_unattached_peers() { return left_ > 0 && unseen().has_value(); }
  // True if peers that have yet to find this rank's stage may need its data.
  bool is_needed() const { return is_idle() && left_ > 0; }

 private:
  struct PeerStaging {
    StagingBuffer stage;
    std::uint64_t seen = 0;      // latest FlagLine::turn read there
    std::size_t fits = 0;        // longest slot known to fit there
  };
  PeerStaging& at(int position) { return peer_staging_[static_cast<std::size_t>(position)]; }
  const PeerStaging& at(int position) const { return peer_staging_[static_cast<std::size_t>(
      position)]; }
  bool reaches(int position, std::size_t slot_bytes);   // true if such a slot fits there
  bool have_left(std::uint64_t call) const {   // true if all peers are known to have left
    const std::uint64_t left = turn_of(call, kLeft);
    for (const PeerStaging& peer : peer_staging_)
      if (peer.seen < left && &peer != &at(rank_)) return false;
    return true;
  }
  std::optional<int> find_occupied(std::uint64_t before, std::optional<CallMismatch>& mismatch);
  std::optional<CallMismatch> confirmed_mismatch(int position, std::uint64_t call) const;
  static constexpr std::size_t kInLine = ~std::size_t{0};
  struct Slot {
    std::size_t begin = kInLine, end = kInLine;   // offsets
    bool overlaps(const Slot& other) const { return begin < other.end && other.begin < end; }
  };
  // Returns the next slot; equal on all ranks, since they make the same calls.
  Slot next_slot(std::size_t wanted) const {
    return wanted <= sizeof(FlagLine::slot) ? Slot{} : rotated_slot(wanted);
  }
  // True if the next slot of that length is in an odd round. A round of rotating slots ends when
  // they wrap around, one of short slots when both fixed places have been used.
  bool is_in_odd_round(std::size_t slot_bytes) const;
  std::size_t rotation_end(std::size_t wanted) const;
  std::size_t needed_bytes(std::size_t wanted) const;
  [[gnu::noinline]]   // inlined, it would slow down short calls
  Slot rotated_slot(std::size_t wanted) const;
  std::size_t short_slot_begin() const;   // offset of the next short slot
  void show_stamp(std::uint64_t call);
  void prefetch_exclusive(std::uint64_t call);
  bool look(int position, std::uint64_t call, std::uint64_t turn);
  StagingBuffer& own() { return at(rank_).stage; }
  // Lane flags follow the two flag lines that calls use in turn.
  static std::atomic<std::uint64_t>& flag(const StagingBuffer& stage, int lane) {
    return stage.line_at(static_cast<std::size_t>(2 + lane) * StagingBuffer::kApart).turn;
  }

  const ShmProfile& profile_;
  StagingBuffers& stages_;
  std::uint64_t context_;
  std::vector<int> ranks_;
  int rank_;
  std::vector<PeerStaging> peer_staging_;      // by position
  std::uint64_t enrolled_ = 0, left_ = 0;
  bool left_quietly_ = false;    // the flag line does not show that the last call was left
  bool shows_stamp_ = true;      // the flag line shows the last call
  Slot slot_;                    // of the last call
  std::size_t nontemporal_left_ = 0;   // non-temporal bytes before plain stores are tried again
  std::size_t untimed_left_;     // bytes to write before plain copies are timed
  int slow_in_a_row_ = 0;        // consecutive slow plain copies
  std::uint64_t short_calls_ = 0;   // calls whose slot had one of the two fixed places
  std::size_t next_rotated_ = 0;    // least offset of the next rotating slot
  bool was_odd_round_ = false;      // the last rotating slot was in an odd round
  bool is_modest_ = true;        // no slot so far was longer than a modest one
  std::optional<Error> lacking_;
  bool swaps_ = false;           // the last call may swap stages
  bool swapped_ = false;         // the last call swaps stages
  CallStamp stamps_[4];          // of this rank's last calls, by call % 4
  std::uint64_t digest_ = 0;     // hash of all its calls
};

}  // namespace paceline
