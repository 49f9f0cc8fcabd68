// Claims: the ranks of a call take positions as they enter it.
//
// One compare-and-exchange takes the next free position of the call; one store then writes the
// rank. A rank enters a call only when every peer has left the call before the last one
// (engine/shm/shm_channel.hpp), so two sides, used in turn, keep calls apart. Every word holds its
// call's number, so words of earlier calls are ignored and need no clearing.
// tests/world/claims_test.cpp runs these functions through all interleavings.
#pragma once

#include <cstdint>

#include "transport/staging.hpp"

namespace paceline::claims {

constexpr std::uint64_t word(std::uint64_t call, int value) {
  return call << 16 | static_cast<std::uint64_t>(value);
}
constexpr std::uint64_t call_of(std::uint64_t word) { return word >> 16; }
constexpr int value_of(std::uint64_t word) { return static_cast<int>(word & 0xffff); }
constexpr std::size_t side_of(std::uint64_t call) { return call % 2; }

// Returns the counter's value after one more position is taken; `before`: its value so far.
constexpr std::uint64_t one_more(std::uint64_t before, std::uint64_t call) {
  return call_of(before) == call ? before + 1 : word(call, 1);
}

// Takes the next free position of this call, from 0 on.
inline int take(StageClaims& claims, std::uint64_t call) {
  std::atomic<std::uint64_t>& taken = claims.counters[side_of(call)].taken;
  std::uint64_t before = taken.load(std::memory_order_relaxed);
  while (!taken.compare_exchange_weak(before, one_more(before, call), std::memory_order_relaxed)) {
  }
  return value_of(one_more(before, call)) - 1;
}

inline void publish(StageClaims& claims, std::uint64_t call, int position, int rank) {
  claims.ranks[side_of(call)][static_cast<std::size_t>(position)].store(word(call, rank),
                                                                      std::memory_order_release);
}

// Returns the rank that this cell names for this call; -1: none yet.
constexpr int named_in(std::uint64_t cell, std::uint64_t call) {
  return call_of(cell) == call ? value_of(cell) : -1;
}

inline int rank_at(const StageClaims& claims, std::uint64_t call, int position) {
  return named_in(claims.ranks[side_of(call)][static_cast<std::size_t>(position)].load(
                      std::memory_order_acquire),
                  call);
}

}  // namespace paceline::claims
