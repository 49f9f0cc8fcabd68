// Recorder: writes when one rank entered and left each collective.
//
// A recorded call costs two readings of the clock and one cache line of memory that is mapped and
// touched before the first call; it takes no lock, allocates nothing and asks the system for
// nothing. When the file is full, later calls are counted but not kept.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "profile/format.hpp"

namespace paceline {

// Returns CLOCK_MONOTONIC in nanoseconds, the time of all records.
std::int64_t profile_now_ns();

// Equal on processes whose CLOCK_MONOTONIC is the same: those of one boot and one time namespace.
std::uint64_t clock_identity();

struct ProfileConfig {
  std::string folder;             // must exist, or be one that can be made
  std::string source = "paceline";  // the recording library; or "mpi"
  std::string node = {};          // empty: the host's name
  int rank = 0, ranks = 1;
  std::size_t bytes = 16u << 20;  // of records
};

// Description of a call at its entry.
struct CallEntry {
  int collective = 0;
  std::uint32_t communicator = 0;
  std::uint32_t number = 0;
  std::uint32_t site = 0;
  std::uint64_t bytes = 0;
  bool nonblocking = false;
};

class Recorder {
 public:
  // Makes <folder>/<source>-<rank>.profile. Throws a resource error with a remedy.
  explicit Recorder(const ProfileConfig& config);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Null: there is no room left. The clock is read last.
  CallRecord* enter(const CallEntry& entry) {
    const std::uint64_t at = header_->calls.fetch_add(1, std::memory_order_relaxed);
    if (at >= header_->capacity) return nullptr;
    CallRecord& record = records_[at];
    record.bytes = entry.bytes;
    record.communicator = entry.communicator;
    record.number = entry.number;
    record.site = entry.site;
    record.collective = static_cast<std::uint16_t>(entry.collective);
    record.nonblocking = entry.nonblocking;
    record.enter_ns = profile_now_ns();
    record.stage.store(CallStage::entered, std::memory_order_release);
    return &record;
  }
  static void leave(CallRecord& record, bool ok) {
    record.leave_ns = profile_now_ns();
    CallStage stage = CallStage::entered;   // a call completed meanwhile stays complete
    record.stage.compare_exchange_strong(stage, ok ? CallStage::returned : CallStage::failed);
  }
  // The program begins to wait for a non-blocking call; later ones of the same call change nothing.
  static void wait(CallRecord& record) {
    if (record.wait_ns == 0) record.wait_ns = profile_now_ns();
  }
  static void complete(CallRecord& record, bool ok) {
    record.done_ns = profile_now_ns();
    if (!ok) record.stage = CallStage::failed;
    if (record.stage != CallStage::failed) record.stage = CallStage::complete;
  }

  // The number of a communicator with these ranks of the world. `instance` is equal on all of them
  // and unique to the communicator; without it, communicators of the same ranks are numbered in the
  // order in which this rank first used them.
  std::uint32_t communicator(std::span<const int> ranks,
                             std::optional<std::uint64_t> instance = {});
  // The number of a persistent operation, the `which`-th made on that communicator. It matches the
  // operation's starts, which belong to the communicator.
  std::uint32_t operation(std::uint32_t communicator, std::uint32_t which);
  // The number of a place in the program, or of another label of a call.
  std::uint32_t site(std::string_view name);
  // One line of text: a JSON object.
  void note(std::string_view line);

  // The program, or the part of it that was to be recorded, has ended normally. Records
  // stay in the file and leave this process's memory.
  void finish();

  const std::string& path() const { return path_; }
  std::uint64_t clock() const { return header_->clock; }

 private:
  void map(const ProfileConfig& config);
  void describe(const ProfileConfig& config);

  std::string path_;
  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
  ProfileHeader* header_ = nullptr;
  CallRecord* records_ = nullptr;
  std::mutex mutex_;   // of what follows
  std::map<std::vector<int>, std::uint32_t> alike_;   // communicators made so far, by ranks
  std::map<std::string, std::uint32_t, std::less<>> sites_;
  std::uint32_t communicators_ = 0;
};

}  // namespace paceline
