// Stages: memory in which the ranks of a node show each other what they do and what they have, for
// calls that send nothing (ir/straight.hpp).
//
// Every rank of a communicator has one stage. It alone writes there, its peers read. Two lines are
// used in turn by the calls, and each call has a room of its own beside the one before, so that a
// rank may be one call ahead of its peers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "transport/transport.hpp"

namespace paceline {

// One cache line: how far its owner has come in a call, which call that is, and what is short
// enough to travel along.
struct alignas(64) StageLine {
  std::atomic<std::uint64_t> turn;   // number of the straight call << 16 | signals given so far
  std::atomic<std::uint64_t> what, count;   // the call's fingerprint
  std::atomic<std::uint64_t> past;   // its number among all << 32 | digest of the straight ones
  std::byte room[32];
};
static_assert(sizeof(StageLine) == 64 && std::atomic<std::uint64_t>::is_always_lock_free);

// How far, for a call that the owner has left.
inline constexpr std::uint64_t kLeft = 0xffff;

// Behind the lines: whose stage this is, and how many peers have found it. Those keep it when its
// owner goes.
struct StageOwner {
  std::uint64_t nonce, context;
  std::atomic<std::uint32_t> found;
};

struct Stage {
  static constexpr std::size_t kHead = 4096;   // bytes before the place for rooms
  static constexpr std::size_t kOwner = 1024;  // offset of the StageOwner
  std::byte* memory = nullptr;

  StageOwner& owner() const { return *reinterpret_cast<StageOwner*>(memory + kOwner); }
  // Two lines apart, since processors fetch lines in pairs.
  StageLine& line(std::uint64_t call) const {
    return *reinterpret_cast<StageLine*>(memory + call % 2 * 2 * sizeof(StageLine));
  }
  std::byte* at(std::size_t offset) const { return memory + kHead + offset; }
};

class Stages {
 public:
  virtual ~Stages() = default;
  virtual std::size_t bytes() const = 0;   // for rooms, of each stage; equal on all ranks
  virtual Stage open(std::uint64_t context) = 0;   // this rank's own; throws a resource error
  // A peer's; nothing before the peer has opened it. Stays valid until close().
  virtual std::optional<Stage> find(int peer, std::uint64_t context) = 0;
  virtual void close(std::uint64_t context) = 0;   // the own one; every peer has found it
};

}  // namespace paceline
