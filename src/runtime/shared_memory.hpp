// Shared memory of a communicator: how it is made, and where the buffers of a call lie in it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/operation.hpp"
#include "ir/layout.hpp"
#include "runtime/communicator.hpp"

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

// What to allocate; equal on all ranks.
struct Wanted {
  std::uint64_t number = 0;   // of the allocation
  std::size_t bytes = 0;      // on every rank
  std::string folder;         // a memory file system
  std::vector<int> ranks;     // of the world, by position
  bool one_node = true;       // else sharing is not tried
  bool huge_pages = false;    // from kHugePage bytes on
};

// Collective over the communicator. Where a rank does not reach all parts, every rank gets private
// memory.
std::shared_ptr<SharedMemory> allocate_shared(Communicator& communicator, const Wanted& wanted,
                                              SharedBook& book);

}  // namespace paceline
