// Attached: the buffers of a call's peers that are in no memory shared by all, and copies from and
// to them.
//
// Every rank shows where its buffers are, in its line, and its peers believe it as long as it is in
// the call. A call that fails is left before its end, and then the caller may free the buffers: so
// who fails takes back what it has shown, and stays until no peer copies there. Who is about to
// copy says so first and then looks whether it still may: one of the two sees the other.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/shm/shm_channel.hpp"

namespace paceline {

class Attached {
 public:
  Attached(ShmChannel& shm, int rank) : shm_(&shm), rank_(rank) {}

  void use(ShmChannel& shm) { shm_ = &shm; }   // of the next call

  // Of the call that has been entered, before its first signal.
  void show(std::uint64_t call, const std::byte* input, const std::byte* output);
  void withdraw();

  struct Copy {
    int position = 0;        // whose buffer
    bool is_input = false;   // or the output
    bool writes = false;
    std::size_t offset = 0;  // in the buffer
    std::byte* here = nullptr;
    std::size_t bytes = 0;
  };
  static constexpr int kGone = -1;   // the peer has failed or ended; others will say why
  int copy(const Copy& wanted);      // 0, kGone, or the system's errno

 private:
  int copy_piece(const Copy& wanted, std::size_t at, std::size_t bytes);

  ShmChannel* shm_;
  int rank_;
  std::uint64_t call_ = 0;
};

}  // namespace paceline
