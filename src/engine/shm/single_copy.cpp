#include "engine/shm/single_copy.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

namespace paceline {
namespace {

// Bytes of a system call. A rank that withdraws waits at most for one piece, which takes much
// longer than the call itself.
constexpr std::size_t kPiece = 1u << 20;
// Limit of the wait in withdraw(). Only a peer that is stopped while it copies takes so long.
constexpr int kNapUs = 50, kMostNaps = 200000;

}  // namespace

void Attached::show(std::uint64_t call, const std::byte* input, const std::byte* output) {
  call_ = call;
  ExportedBuffers& mine = shm_->exported(rank_, call);
  mine.input.store(reinterpret_cast<std::uintptr_t>(input), std::memory_order_relaxed);
  mine.output.store(reinterpret_cast<std::uintptr_t>(output), std::memory_order_relaxed);
  mine.inside.store(0, std::memory_order_relaxed);
  mine.state.store(ExportedBuffers::kOpen, std::memory_order_relaxed);   // seen with a signal
}

void Attached::withdraw() {
  shm_->exported(rank_, call_).state.store(ExportedBuffers::kClosed, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const auto copies_here = [&](int peer) {
    return shm_->is_inside(peer, call_) && !shm_->has_ended(peer) &&
           shm_->exported(peer, call_).inside.load(std::memory_order_acquire) ==
               static_cast<std::uint64_t>(rank_) + 1;
  };
  for (int peer = 0; peer < shm_->ranks(); ++peer)
    for (int naps = 0; peer != rank_ && naps < kMostNaps && copies_here(peer); ++naps)
      std::this_thread::sleep_for(std::chrono::microseconds(kNapUs));
}

int Attached::copy(const Copy& wanted) {
  for (std::size_t at = 0; at < wanted.bytes; at += kPiece)
    if (const int error = copy_piece(wanted, at, std::min(kPiece, wanted.bytes - at))) {
      if (!PeerCopy::is_refusal(error)) return error;
      shm_->exported(rank_, call_).state.store(ExportedBuffers::kRefused,
                                               std::memory_order_relaxed);   // seen as above
      return 0;
    }
  return 0;
}

bool Attached::is_refused(int position) const {
  const auto met = [&](int rank) {
    return shm_->exported(rank, call_).state.load(std::memory_order_relaxed) ==
           ExportedBuffers::kRefused;
  };
  return met(rank_) || met(position);
}

int Attached::copy_piece(const Copy& wanted, std::size_t at, std::size_t bytes) {
  const ExportedBuffers& theirs = shm_->exported(wanted.position, call_);
  std::atomic<std::uint64_t>& inside = shm_->exported(rank_, call_).inside;
  inside.store(static_cast<std::uint64_t>(wanted.position) + 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  int error = kGone;
  if (theirs.state.load(std::memory_order_acquire)) {
    const auto& base = wanted.is_input ? theirs.input : theirs.output;
    error = shm_->copy({wanted.position, wanted.writes,
                          base.load(std::memory_order_relaxed) + wanted.offset + at,
                          wanted.here + at, bytes});
    // Buffers that the peer has freed meanwhile are not this rank's error.
    if (error == ESRCH || !theirs.state.load(std::memory_order_acquire)) error = kGone;
  }
  inside.store(0, std::memory_order_release);
  return error;
}

}  // namespace paceline
