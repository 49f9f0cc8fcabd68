// Ring: a queue of cells in shared memory from one writer to one reader.
//
// A cell carries its own turn number: the reader sees a whole cell by one line that the writer
// changed, and the two share nothing else but the reader's count of what it has freed, which the
// writer looks at only when the ring seems full. Everything read from a cell is checked before it
// is believed.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "transport/transport.hpp"

namespace paceline {

// eager    a whole message                         request  a message that waits to be asked for
// grant    go ahead, answers a request             data     a piece of a granted message
// abort    a communicator is broken; text follows
enum class CellKind : std::uint16_t { eager, request, grant, data, abort };

struct Cell64 {                     // the header of a cell, one cache line
  std::atomic<std::uint64_t> turn;  // position in the stream + 1 once it is filled
  std::uint64_t context;
  std::uint64_t what;  // fingerprint
  std::uint64_t count;
  std::uint64_t total;  // bytes of the whole message
  std::uint32_t number;
  std::int32_t seq;
  std::uint32_t bytes;  // in this cell
  std::uint32_t token;  // the other side's name for the transfer
  std::uint16_t lane;
  CellKind kind;
  std::uint32_t signal;
};
static_assert(sizeof(Cell64) == 64 && std::atomic<std::uint64_t>::is_always_lock_free);

struct RingShape {
  static constexpr std::size_t kLeastCells = 4, kMostCells = 16;
  static constexpr std::size_t kLeastCell = 256, kMostCell = 64u << 10;   // payload
  std::size_t cell_bytes = 32768;  // payload
  std::size_t cells = kMostCells;  // a power of two: they go round all the time
  std::size_t stride() const { return sizeof(Cell64) + cell_bytes; }
  std::size_t bytes() const { return 64 + cells * stride(); }
};

class Ring {
 public:
  Ring() = default;
  Ring(std::byte* memory, RingShape shape) : memory_(memory), shape_(shape) {}

  // Writer: the next cell to fill, or none while the ring is full; publish() hands it over.
  Cell64* free_cell() {
    if (at_ - freed_ >= shape_.cells) {
      // A reader cannot free what was not written; anything else is damage, and must not wrap
      // around.
      freed_ = std::min(freed()->load(std::memory_order_acquire), at_);
      if (at_ - freed_ >= shape_.cells) return nullptr;
    }
    return cell(at_);
  }
  void publish() {
    cell(at_)->turn.store(at_ + 1, std::memory_order_release);
    ++at_;
  }

  // Reader: the next filled cell, or none; release() gives it back.
  Cell64* filled_cell() {
    const std::uint64_t at = std::atomic_ref(at_).load(std::memory_order_relaxed);
    Cell64* c = cell(at);
    return c->turn.load(std::memory_order_acquire) == at + 1 ? c : nullptr;
  }
  void release() {
    const std::uint64_t next = at_ + 1;
    std::atomic_ref(at_).store(next, std::memory_order_relaxed);
    freed()->store(next, std::memory_order_release);
  }

  static std::byte* payload(Cell64* cell) { return reinterpret_cast<std::byte*>(cell + 1); }
  std::size_t cell_bytes() const { return shape_.cell_bytes; }

 private:
  std::atomic<std::uint64_t>* freed() const {
    return reinterpret_cast<std::atomic<std::uint64_t>*>(memory_);
  }
  Cell64* cell(std::uint64_t position) const {
    const std::uint64_t at = position & (shape_.cells - 1);
    return reinterpret_cast<Cell64*>(memory_ + 64 + at * shape_.stride());
  }

  std::byte* memory_ = nullptr;
  RingShape shape_;
  std::uint64_t at_ = 0;
  std::uint64_t freed_ = 0;  // the writer's last look at what the reader has freed
};

}  // namespace paceline
