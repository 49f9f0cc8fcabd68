// SharedMemory: memory that a communicator allocates on all its ranks together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/call.hpp"
#include "runtime/shared_book.hpp"

namespace paceline {

// Memory of the same size on every rank of a communicator. If the ranks share a node, each reaches
// all of it, and calls on it take symmetric algorithms; else it is private memory. A rank's part
// lives as long as the rank holds it.
class SharedMemory {
 public:
  virtual ~SharedMemory() = default;
  virtual std::byte* data() const = 0;
  virtual std::size_t bytes() const = 0;
  virtual bool is_shared() const = 0;
  // Reason why the memory is not shared, on the one rank that reports it. Empty on the others, if
  // the memory is shared, or if the ranks are on several nodes.
  virtual std::string trouble() const = 0;
};

// The request for an allocation; equal on all ranks.
struct Wanted {
  std::uint64_t number = 0;   // of the allocation
  std::size_t bytes = 0;      // on every rank
  std::string folder;         // on a memory file system
  std::vector<int> ranks;     // ranks of the world, by position
  bool one_node = true;       // false: memory is private
  bool huge_pages = false;    // used from kHugePage bytes on
};

// A rank and the communicator's collectives.
struct RankCalls {
  int rank = 0;
  int ranks = 1;
  std::function<void(const Call&)> run;
};

// Collective. If a rank does not reach all parts, every rank gets private memory.
std::shared_ptr<SharedMemory> allocate_shared(const RankCalls& calls, const Wanted& wanted,
                                              SharedBook& book);

}  // namespace paceline
