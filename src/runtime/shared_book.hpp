// SharedBook: the shared memory that a process holds; it finds the buffers of a call there.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/operation.hpp"
#include "ir/layout.hpp"
#include "runtime/call.hpp"

namespace paceline {

// A call's buffers in shared memory.
struct SharedPlaces {
  std::vector<PeerBuffers> peers;   // by position
  std::uint64_t name = 0;           // equal on all ranks if they passed corresponding buffers
};

// One collective allocation, as this process sees it.
struct Allocation {
  std::uint64_t number = 0;         // equal on all ranks, new for each
  std::vector<int> ranks;           // ranks of the world that have a part, by position
  std::vector<std::byte*> parts;    // by position
  std::size_t rank = 0;             // this process's position
  std::size_t bytes = 0;            // of a part
};

// The allocations of a world that are still held.
class SharedBook {
 public:
  void add(const std::shared_ptr<const Allocation>& allocation);
  // Number of allocations and releases of shared memory so far.
  std::uint64_t changes() const { return changes_->load(std::memory_order_acquire); }
  // Counter behind changes(), which an allocation increments when it is released.
  std::shared_ptr<std::atomic<std::uint64_t>> counter() const { return changes_; }
  // Returns the places of the call's buffers. Nothing if one lies outside of the allocations, or in
  // one of which a rank of the call has no part. `ranks`: ranks of the world by position.
  std::optional<SharedPlaces> find(const Call& call, const Problem& problem, const Layout& layout,
                                   const std::vector<int>& ranks) const;

 private:
  std::shared_ptr<const Allocation> holder(const void* buffer, std::size_t bytes) const;

  mutable std::mutex mutex_;
  std::shared_ptr<std::atomic<std::uint64_t>> changes_ =
      std::make_shared<std::atomic<std::uint64_t>>(0);
  std::vector<std::weak_ptr<const Allocation>> allocations_;
};

}  // namespace paceline
