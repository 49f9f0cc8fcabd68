// Slab: one file with places for the stages of many communicators of a rank.
//
// Its first page is a directory: which communicator's stage each slot holds. The file is as long as
// all of them may become, and sparse: a slot takes memory as its owner reserves it, and gives most
// of it back when the communicator has been closed.
#pragma once

#include <atomic>
#include <cstdint>

#include "transport/shm/segment.hpp"
#include "transport/staging.hpp"

namespace paceline {

class Slab {
 public:
  static constexpr int kSlots = 64;   // at most
  static constexpr std::size_t kDirectory = 4096;   // bytes
  static constexpr std::size_t file_bytes(int slots, std::size_t slot_bytes) {
    return kDirectory + static_cast<std::size_t>(slots) * (StagingBuffer::kHead + slot_bytes);
  }

  Slab(SharedFile file, int slots, std::size_t slot_bytes)
      : file_(std::move(file)), slots_(slots), slot_bytes_(StagingBuffer::kHead + slot_bytes) {}

  // Makes a slab for the stages of later communicators: in no folder if that is allowed, since a
  // folder that fills up as one of them grows would be an error then. Throws a resource error.
  static Slab create(const std::string& folder, int slots, std::size_t slot_bytes);
  // Number of slots that a file may have, by the limits of this process, if each of `ranks` ranks
  // makes such a file and maps those of the others: 1 to kSlots.
  static int slots_within_limits(std::size_t slot_bytes, int ranks);
  static Slab attach(const std::string& address, int slots, std::size_t slot_bytes);

  int slots() const { return slots_; }
  int descriptor() const { return file_.descriptor(); }
  std::atomic<std::uint64_t>& context(int slot) const {   // 0: free
    return reinterpret_cast<std::atomic<std::uint64_t>*>(file_.data())[slot];
  }
  StagingBuffer stage(int slot) const { return {file_.data() + begin(slot)}; }

  // Reserves a stage's slots from byte `from` to byte `slot_bytes`, and its head if `from` is 0.
  // Throws a resource error.
  void reserve(int slot, std::size_t from, std::size_t slot_bytes);
  void touch(int slot, std::size_t from, std::size_t slot_bytes);   // maps what is there
  void release(int slot, std::size_t from);   // gives back all from there on

 private:
  std::size_t begin(int slot) const {
    return kDirectory + static_cast<std::size_t>(slot) * slot_bytes_;
  }

  SharedFile file_;
  int slots_;
  std::size_t slot_bytes_;
};

}  // namespace paceline
