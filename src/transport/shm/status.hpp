// Status: the call of a rank and the rank that it waits for, in its inbox for peers to read.
#pragma once

#include <atomic>
#include <cstdint>

#include "transport/shm/inbox.hpp"
#include "transport/transport.hpp"

namespace paceline::shm {

// Only the owner publishes.
inline void publish_status(InboxHeader& h, const PeerStatus& d) {
  const std::uint64_t version = h.version.load(std::memory_order_relaxed);
  h.version.store(version + 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  h.context.store(d.context, std::memory_order_relaxed);
  h.what.store(d.fingerprint.what, std::memory_order_relaxed);
  h.count.store(d.fingerprint.count, std::memory_order_relaxed);
  h.number.store(std::uint64_t{d.number} << 1 | std::uint64_t{d.inside},
                 std::memory_order_relaxed);
  h.version.store(version + 2, std::memory_order_release);
}

// `rank`: -1: none. It holds until the next publish_status(), which does not have to take it back.
inline void publish_awaited(InboxHeader& h, int rank) {
  const std::uint64_t version = h.version.load(std::memory_order_relaxed);
  h.awaited.store(version << 32 | static_cast<std::uint32_t>(rank + 1),
                  std::memory_order_relaxed);
}

// Returns an empty status if the owner keeps changing it, which shows that it is not stuck. The
// content is not checked.
inline PeerStatus status_in(const InboxHeader& h) {
  const std::uint64_t version = h.version.load(std::memory_order_acquire);
  const std::uint64_t number = h.number.load(std::memory_order_relaxed);
  PeerStatus doing{
      h.context.load(std::memory_order_relaxed),
      {h.what.load(std::memory_order_relaxed), h.count.load(std::memory_order_relaxed)},
      static_cast<std::uint32_t>(number >> 1),
      (number & 1) != 0};
  const std::uint64_t awaited = h.awaited.load(std::memory_order_relaxed);
  if (awaited >> 32 == static_cast<std::uint32_t>(version))
    doing.awaits = static_cast<int>(static_cast<std::uint32_t>(awaited)) - 1;
  std::atomic_thread_fence(std::memory_order_acquire);
  return version % 2 == 0 && version == h.version.load(std::memory_order_relaxed) ? doing
                                                                                  : PeerStatus{};
}

}  // namespace paceline::shm
