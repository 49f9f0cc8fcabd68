// Forks: whether this process is a child that fork() made after something was made in its parent.
//
// A child has its parent's memory and none of its threads: what was locked stays locked, and what
// it would say in shared memory, the parent's peers would believe.
#pragma once

#include <atomic>
#include <cstdint>

namespace paceline {

// How many forks lie between this process and the one that loaded the library, as far as they have
// been counted: a number that a child does not share with its parent.
inline std::atomic<std::uint32_t> forks_counted{0};
inline std::uint32_t forks() { return forks_counted.load(std::memory_order_relaxed); }

void count_forks();   // from now on; once is enough

}  // namespace paceline
