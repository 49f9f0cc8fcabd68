// SharedBook: the shared memory that a process holds, and where the buffers of a call lie in it.
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

// Where a call's buffers lie.
struct SharedPlaces {
  std::vector<PeerBuffers> peers;   // by position
  std::uint64_t name = 0;           // equal on all ranks if they passed corresponding buffers
};

// One collective allocation, as this process sees it.
struct Allocation {
  std::uint64_t number = 0;         // equal on all ranks, new for each
  std::vector<int> ranks;           // of the world, that have a part, by position
  std::vector<std::byte*> parts;    // by position
  std::size_t rank = 0;             // own position
  std::size_t bytes = 0;            // of a part
};

// The allocations of a world that are still held.
class SharedBook {
 public:
  void add(const std::shared_ptr<const Allocation>& allocation);
  // Grows whenever there is more or less shared memory; 0 while there has been none.
  std::uint64_t changes() const { return changes_->load(std::memory_order_acquire); }
  // For those who hold shared memory: to be added to when it goes.
  std::shared_ptr<std::atomic<std::uint64_t>> counter() const { return changes_; }
  // Nothing unless all the buffers that the call uses lie in allocations of which all its ranks
  // (of the world, by position) have a part.
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
