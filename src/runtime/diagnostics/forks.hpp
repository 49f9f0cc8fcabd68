// Forks: detects that this process is a forked child of the one that made an object.
//
// A child has its parent's memory and none of its threads: held locks stay locked, and the parent's
// peers would believe what the child writes to shared memory.
#pragma once

#include <atomic>
#include <cstdint>

namespace paceline {

// Number of forks between the process that loaded the library and this one, since count_forks(). A
// child's number differs from its parent's.
inline std::atomic<std::uint32_t> forks_counted{0};
inline std::uint32_t forks() { return forks_counted.load(std::memory_order_relaxed); }

void count_forks();   // begins to count; repeated calls do nothing

}  // namespace paceline
