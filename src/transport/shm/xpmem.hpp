// Xpmem: memory of peers, mapped into this process. A kernel module that some clusters have does
// it, through a library that is loaded where it is found; nothing needs it.
//
// Source  https://github.com/hpc/xpmem (include/xpmem.h: what its functions take and give).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "transport/stage.hpp"

namespace paceline {

class Xpmem {
 public:
  explicit Xpmem(bool is_wanted);
  ~Xpmem();
  Xpmem(const Xpmem&) = delete;
  Xpmem& operator=(const Xpmem&) = delete;

  // By which peers reach all memory of this process; 0: not here.
  std::int64_t segment() const { return segment_; }

  // All of it, between own memory and that of the peer with this segment; 0, or an errno. EFAULT:
  // it has no such memory, or has ended.
  int copy(std::int64_t segment, const PeerCopy& wanted);

 private:
  struct Library;   // its functions
  struct Window {
    std::byte* here = nullptr;
    std::uint64_t turn = 0;   // when it was last used
  };
  struct Permit {
    std::int64_t number = 0;
    std::map<std::uint64_t, Window> windows;   // by the peer's address
  };

  Permit* permit_of(std::int64_t segment);
  std::byte* window_at(Permit& permit, std::uint64_t address);
  void give_up_oldest(Permit& permit);

  const Library* library_ = nullptr;
  std::int64_t segment_ = 0;
  std::map<std::int64_t, Permit> permits_;   // by the peer's segment
  std::uint64_t turn_ = 0;
  std::mutex mutex_;
};

}  // namespace paceline
