// Inbox: the layout of a rank's shared memory, and how ranks of a machine attach each other's.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "transport/process.hpp"
#include "transport/shm/peer_memory.hpp"
#include "transport/shm/provision.hpp"
#include "transport/shm/ring.hpp"
#include "transport/shm/segment.hpp"
#include "transport/shm/shm.hpp"

namespace paceline {

// The first page of a rank's shared memory; the rings from rank 0, 1, ... follow.
struct InboxHeader {
  std::uint64_t nonce[2];                         // proves that this is the memory meant
  char memory[192];                               // PeerMemory::card() of the owner
  alignas(64) std::atomic<std::uint32_t> asleep;  // a futex: 1 while the owner sleeps
  std::atomic<std::uint32_t> left;                // the owner has said good-bye: Leaving, or 0
  alignas(
      64) std::atomic<std::uint64_t> version;  // of what follows; odd while the owner changes it
  std::atomic<std::uint64_t> context;          // what the owner is about (PeerStatus)
  std::atomic<std::uint64_t> what, count;
  std::atomic<std::uint64_t> number;  // number << 1 | inside
  std::atomic<std::uint64_t> awaited;  // the version it holds for << 32 | 1 + a rank, or 0: none
};

// Place of a slab of the owner's stages: slots << 32 | 1 + the owner's descriptor of it; 0: none.
using SlabEntry = std::atomic<std::int64_t>;

constexpr std::size_t kInboxHeader = 4096;
constexpr std::size_t kSlabTable = 1024;   // offset within it
static_assert(sizeof(InboxHeader) <= kSlabTable);

// Bytes of small messages that were taken out of a ring and matched, per writer, which knows by it
// how much lies unread. One line each, behind the header.
struct alignas(64) Drained {
  std::atomic<std::uint64_t> bytes;
};

class Inboxes {
 public:
  Inboxes(Bootstrap& meeting, const ShmConfig& config);
  Inboxes(const Inboxes&) = delete;
  Inboxes& operator=(const Inboxes&) = delete;

  InboxHeader& header(int rank) const {
    return *reinterpret_cast<InboxHeader*>(files_[std::size_t(rank)].data());
  }
  Drained& drained(int owner, int writer) const;
  Ring ring(int owner, int writer) const;
  std::span<SlabEntry> slab_table(int rank) const {
    return {reinterpret_cast<SlabEntry*>(files_[std::size_t(rank)].data() + kSlabTable),
            (kInboxHeader - kSlabTable) / sizeof(SlabEntry)};
  }
  int ranks() const { return ranks_; }
  int process_id(int rank) const { return pid_[std::size_t(rank)]; }
  bool is_oversubscribed() const;   // see Transport
  bool has_died(int rank) const;  // its process has ended
  // True if a rank that goes to sleep can make all ranks' stores show (membarrier), so that ranks
  // that wake it need no fence of their own.
  bool is_light() const { return light_; }
  // The size of stages that the ranks have agreed on, and this rank's first stage, to be taken
  // once.
  const Provision& provision() const { return provision_; }
  SharedFile take_reserved() { return std::move(reserved_); }
  PeerMemory& memory() { return memory_; }

 private:
  std::string create(const ShmConfig& config);   // returns the card that leads to it
  void attach(const Bootstrap& meeting, int peer, const std::string& card);
  std::string reserve(const ShmConfig& config);   // the first stage; returns why it cannot
  void settle(const ShmConfig& config, const std::vector<std::string>& said);

  int rank_;
  int ranks_;
  std::vector<RingShape> shapes_;   // by owner
  std::vector<SharedFile> files_;
  std::vector<SharedWatch> process_;  // of each peer
  std::vector<int> pid_;
  bool light_ = true;
  std::vector<FolderSpace> spaces_;   // of the ranks, in any order
  Provision provision_;
  SharedFile reserved_;
  PeerMemory memory_;
};


}  // namespace paceline
