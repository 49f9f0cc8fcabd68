// State of the profiler: this rank's file, its communicators, persistent calls, and calls with a
// request that the program has yet to complete.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "host_mpi.hpp"
#include "profile/recorder.hpp"

namespace paceline::preload {

// A communicator of MPI.
struct Watched {
  std::uint32_t id = 0;              // in the file
  std::atomic<std::uint32_t> calls{0};
  std::atomic<std::uint32_t> operations{0};   // number of persistent ones made
  int rank = 0, ranks = 1;
  int neighbours = 0;   // number of ranks that this one hears in neighbourhood collectives
  bool is_between_groups = false;
};

// Returns null if nothing is recorded: MPI is not running, or no file could be made.
Watched* watched(MPI_Comm comm);

// Returns the number of the call site with this address.
std::uint32_t site_of(const void* address);

// Exists once watched() has returned a communicator.
Recorder& recorder();

// Makes the file, and the attributes that tell of the end of communicators and of MPI. Returns true
// if there is a file now.
bool open_profile();

// Non-blocking and started persistent calls under way, by request. An MPI may give the same request
// to several calls that complete at once, so that a request can occur more than once.
class Pending {
 public:
  struct Entry {
    CallRecord* record;
    bool is_persistent;   // its request stays
  };
  void add(MPI_Request request, CallRecord* record, bool is_persistent);
  bool is_empty() const { return count_.load(std::memory_order_relaxed) == 0; }
  // Removes and returns the oldest call of that request, if there is one.
  std::optional<Entry> take(MPI_Request request);

 private:
  std::mutex mutex_;
  std::atomic<std::size_t> count_{0};
  std::vector<std::pair<MPI_Request, Entry>> calls_;
};
Pending& pending();

// Persistent collectives that the program has made and not yet freed, by request. MPI matches them
// when they are made; ranks may start them in different orders.
class Persistent {
 public:
  struct Operation {
    int name;
    std::uint32_t id;      // in the file, like a communicator's
    std::uint64_t bytes;
    std::uint32_t starts = 0;
  };
  void add(MPI_Request request, const Operation& operation);
  bool remove(MPI_Request request);   // returns true if it was one
  bool is_empty() const { return count_.load(std::memory_order_relaxed) == 0; }
  // Returns the record of its next start; nothing if the request is no persistent collective.
  std::optional<CallEntry> next_start(MPI_Request request, std::uint32_t site);

 private:
  std::mutex mutex_;
  std::atomic<std::size_t> count_{0};
  std::vector<std::pair<MPI_Request, Operation>> operations_;
};
Persistent& persistent();

// Compares this rank's clock with rank 0's; collective over MPI_COMM_WORLD. The second time, at the
// end, only the ranks of the first time take part.
void compare_clocks(const char* when);

}  // namespace paceline::preload
