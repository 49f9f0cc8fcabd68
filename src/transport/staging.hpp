// StagingBuffers: memory in which the ranks of a node show each other their progress and data, for
// calls that send no messages (ir/load_store.hpp).
//
// Every rank of a communicator has one stage. It alone writes there, its peers read; two ranks
// write into each other's slots as well (engine/shm/shm_channel.hpp). Calls use two lines in turn,
// and each call has another slot than the one before, so that a rank may be one call ahead of its
// peers.
#pragma once

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "transport/transport.hpp"

namespace paceline {

// One cache line: the owner's progress in a call, that call, and data short enough to travel along.
struct alignas(64) FlagLine {
  // Number of the load/store call << 16 | 1 + signals given so far; 0: what follows is not yet
  // whole.
  std::atomic<std::uint64_t> turn;
  std::atomic<std::uint64_t> what, count;   // the call's fingerprint
  std::atomic<std::uint64_t> past;   // its number among all << 32 | digest of the load/store ones
  std::byte slot[32];
};
static_assert(sizeof(FlagLine) == 64 && std::atomic<std::uint64_t>::is_always_lock_free);

// Slot of a line in a call in which the system copies between the ranks' buffers: the addresses of
// the owner's buffers, whether peers may still touch them, and the peer whose buffer it writes to.
struct ExportedBuffers {
  // kRefused: peers may, but the system has refused the owner a copy.
  enum State : std::uint64_t { kClosed, kOpen, kRefused };
  std::atomic<std::uint64_t> input, output, state;
  std::atomic<std::uint64_t> inside;   // 1 + the peer's position; 0: none
};
static_assert(sizeof(ExportedBuffers) == sizeof(FlagLine::slot));

// Number of signals that stands for a call that the owner has left.
inline constexpr std::uint64_t kLeft = 0xfffe;

// Table behind the lines: the stage's owner and communicator, its reserved bytes, and the ranks of
// the node that hold it. They keep it when its owner goes: its memory serves another communicator
// once none holds it.
struct AttachTable {
  static constexpr std::size_t kMost = 2000;   // ranks of the node
  enum Holding : std::uint8_t { not_found, holds, let_go };
  std::uint64_t nonce, context;
  std::atomic<std::uint64_t> reserved;   // bytes for slots that are there; only ever more
  std::atomic<bool> has_second;   // the owner has one of the communicator's second channel as well
  std::array<std::atomic<std::uint8_t>, kMost> holding;
};

// Order of arrival, in the stage of a communicator's first rank alone: in calls whose positions are
// claimed (arrival/claims.hpp) every rank takes the next free one as it enters. Two sides, used in
// turn: a rank may be one call ahead of its peers. Every word names its call, so that nothing has
// to be reset and nothing old can be taken for new.
struct StageClaims {
  static constexpr int kMost = 96;   // ranks
  struct alignas(64) Counter {
    std::atomic<std::uint64_t> taken;   // number of the call << 16 | positions taken in it
  };
  std::array<Counter, 2> counters;
  std::array<std::array<std::atomic<std::uint64_t>, kMost>, 2> ranks;   // call << 16 | rank
};

// Times at which the owner of a stage entered and left its last calls that may depend on the order
// of arrival, in ns of a clock that all ranks share. Those calls use four places in turn
// (arrival/entries.hpp).
struct alignas(64) StageEntries {
  static constexpr std::size_t kCalls = 4;
  struct Call {
    std::atomic<std::uint64_t> entered, left;
  };
  std::array<Call, kCalls> calls;
};

struct StagingBuffer {
  static constexpr std::size_t kHead = 8192;   // bytes before the place for slots
  static constexpr std::size_t kAtFirst = 16384;   // of that place, there from the beginning
  static constexpr std::size_t kApart = 2 * sizeof(FlagLine);   // processors fetch them in pairs
  static constexpr int kLines = 32;   // two for calls in turn, then one for each lane
  static constexpr std::size_t kOwner = kLines * kApart;   // offset of the AttachTable
  static constexpr std::size_t kClaims = 6144;             // of the StageClaims
  static constexpr std::size_t kEntries = 7808;             // of the StageEntries
  static_assert(kOwner + sizeof(AttachTable) <= kClaims && kClaims % alignof(StageClaims) == 0 &&
                kClaims + sizeof(StageClaims) <= kEntries &&
                kEntries % alignof(StageEntries) == 0 && kEntries + sizeof(StageEntries) <= kHead);
  std::byte* memory = nullptr;

  AttachTable& owner() const { return *reinterpret_cast<AttachTable*>(memory + kOwner); }
  StageClaims& claims() const { return *reinterpret_cast<StageClaims*>(memory + kClaims); }
  StageEntries& entries() const { return *reinterpret_cast<StageEntries*>(memory + kEntries); }
  FlagLine& line_at(std::size_t offset) const {
    return *reinterpret_cast<FlagLine*>(memory + offset);
  }
  FlagLine& line(std::uint64_t call) const { return line_at(call % 2 * kApart); }
  std::byte* at(std::size_t offset) const { return memory + kHead + offset; }
};

// A copy by the system between memory of this process and of a peer's, where both have their own
// addresses for it.
struct PeerCopy {
  int peer = 0;
  bool writes = false;   // into the peer's memory, or else reads there
  std::uint64_t there = 0;
  std::byte* here = nullptr;
  std::size_t bytes = 0;

  // True for an errno that says that the system lets this rank make no copies with the peer.
  static bool is_refusal(int error) { return error == EPERM || error == ENOSYS; }
};

class StagingBuffers {
 public:
  virtual ~StagingBuffers() = default;
  virtual std::size_t bytes() const = 0;   // for slots, of each stage; equal on all ranks
  // Opens this rank's own; throws a resource error.
  virtual StagingBuffer open(std::uint64_t context) = 0;
  // Makes room for `bytes` of slots in the own one; throws a resource error.
  virtual void reserve(std::uint64_t context, std::size_t bytes) = 0;
  // Finds a peer's; nothing before the peer has opened it. Stays valid until close(). Throws a
  // resource error if it is there, but this rank lacks the means to reach it.
  virtual std::optional<StagingBuffer> find(int peer, std::uint64_t context) = 0;
  virtual bool is_found(const StagingBuffer& own, int peer) const = 0;   // by the peer
  // Closes the own one, which every peer has found or will not need; lets go of theirs.
  virtual void close(std::uint64_t context) = 0;
  virtual void clear() {}   // now and then: gives back what was closed and no peer holds any more

  // Why the system does not copy between the memory of these ranks; empty: it does. Found out when
  // they met, and equal on all of them.
  virtual const std::string& why_not_attached() const = 0;
  virtual const char* attached_by() const = 0;   // the mechanism, if the system copies
  virtual int copy(const PeerCopy& wanted) = 0;   // 0, or its errno; ESRCH: the peer has ended
  virtual bool has_ended(int peer) const = 0;     // its process
};

}  // namespace paceline
