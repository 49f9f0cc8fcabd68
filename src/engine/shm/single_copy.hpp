// Attached: copies from and to the private buffers of a call's peers.
//
// Every rank exports the addresses of its buffers in its line, for as long as it is in the call.
// After a failed call the program may free the buffers. So a rank whose call fails withdraws the
// addresses, and stays until no peer copies there. A rank that copies first marks this in its own
// line and then checks that the peer's addresses are still exported: one of the two sees the other.
//
// The system may refuse copies that it allowed when the ranks joined: one of them has changed its
// user (setuid) or filters its system calls. The rank that meets this marks it in its line before
// its last signal. The root then sends the message to that rank, or to all if it is the root.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/shm/shm_channel.hpp"

namespace paceline {

class Attached {
 public:
  Attached(ShmChannel& shm, int rank) : shm_(&shm), rank_(rank) {}

  void use(ShmChannel& shm) { shm_ = &shm; }   // sets the channel of the next call

  // Exports the buffers of a call that was entered, before its first signal.
  void show(std::uint64_t call, const std::byte* input, const std::byte* output);
  void withdraw();

  struct Copy {
    int position = 0;        // the peer
    bool is_input = false;   // the peer's input; false: its output
    bool writes = false;     // into the peer's buffer
    std::size_t offset = 0;  // in the buffer
    std::byte* here = nullptr;
    std::size_t bytes = 0;
  };
  static constexpr int kGone = -1;   // the peer has failed or ended; other checks report why
  // Returns 0, kGone, or the system's errno. A refused copy counts as made: see is_refused().
  int copy(const Copy& wanted);

  // True if the system has refused this rank, or the peer, a copy of this call. Both know after
  // their last meeting.
  bool is_refused(int position) const;

 private:
  int copy_piece(const Copy& wanted, std::size_t at, std::size_t bytes);

  ShmChannel* shm_;
  int rank_;
  std::uint64_t call_ = 0;
};

}  // namespace paceline
