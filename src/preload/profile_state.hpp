// What the profiler knows: the file of this rank, its communicators, and non-blocking calls that
// the program has yet to complete.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "host_mpi.hpp"
#include "profile/recorder.hpp"

namespace paceline::preload {

// A communicator of MPI.
struct Watched {
  std::uint32_t id = 0;              // in the file
  std::atomic<std::uint32_t> calls{0};
  int rank = 0, ranks = 1;
  bool is_between_groups = false;
};

// Null: not recorded, because MPI is not running or no file could be made.
Watched* watched(MPI_Comm comm);

// The number of the place that calls from this address.
std::uint32_t site_of(const void* address);

// For as long as there are watched communicators.
Recorder& recorder();

// Makes the file and the attributes that tell of the end of communicators and of MPI. Whether there
// is a file now.
bool open_profile();

// Non-blocking calls under way, by request. MPIs may give the same request to several calls that
// are complete at once, so that a request can be here more than once.
class Pending {
 public:
  void add(MPI_Request request, CallRecord* record);
  bool is_empty() const { return count_.load(std::memory_order_relaxed) == 0; }
  // The oldest call of that request; null where there is none. It stays.
  CallRecord* find(MPI_Request request) const;
  void remove(CallRecord* record);

 private:
  mutable std::mutex mutex_;
  std::atomic<std::size_t> count_{0};
  std::vector<std::pair<MPI_Request, CallRecord*>> calls_;
};
Pending& pending();

// Compares this rank's clock with rank 0's; collective over MPI_COMM_WORLD. The second time, at the
// end, only those take part that did so the first time.
void compare_clocks(const char* when);

}  // namespace paceline::preload
