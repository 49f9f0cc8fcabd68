// SharedMemory: memory that a communicator allocates on all of its ranks together.
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

// Memory of the same size on every rank of a communicator. Where they share a node each rank
// reaches all of it, and calls on it take the algorithms called `symmetric`; elsewhere it is memory
// like any other. What a rank holds lives as long as it holds it.
class SharedMemory {
 public:
  virtual ~SharedMemory() = default;
  virtual std::byte* data() const = 0;
  virtual std::size_t bytes() const = 0;
  virtual bool is_shared() const = 0;
  // Why it is not, on the one rank that is to say so; empty on the others, where it is shared, and
  // where that could not be hoped for: between nodes.
  virtual std::string trouble() const = 0;
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

// A rank among others, with the calls by which they agree.
struct RankCalls {
  int rank = 0;
  int ranks = 1;
  std::function<void(const Call&)> run;
};

// Collective. If a rank does not reach all parts every rank gets private memory.
std::shared_ptr<SharedMemory> allocate_shared(const RankCalls& calls, const Wanted& wanted,
                                              SharedBook& book);

}  // namespace paceline
