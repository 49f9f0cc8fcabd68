#include "transport/mpi/start_deadline.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace paceline {
namespace {

// An MPI that gives up by itself says more, and comes first.
constexpr std::chrono::seconds kGrace{5};
constexpr std::chrono::milliseconds kBetweenLooks{500};

int first_ended(const Watches& others) {   // -1: none
  for (const auto& [rank, process] : others)
    if (process->has_ended()) return rank;
  return -1;
}

}  // namespace

StartDeadline::StartDeadline(int rank, const std::string& late, std::chrono::milliseconds limit,
                             const Watches& others)
    : thread_([=, this] { watch(rank, late, limit, others); }) {}

void StartDeadline::watch(int rank, const std::string& late, std::chrono::milliseconds limit,
                          const Watches& others) {
  using Clock = std::chrono::steady_clock;
  auto end = Clock::now() + limit + kGrace;
  int ended = -1;
  std::unique_lock lock(mutex_);
  while (Clock::now() < end) {
    const auto next = std::min(end, Clock::now() + kBetweenLooks);
    if (over_.wait_until(lock, next, [this] { return is_over_; })) return;
    if (ended < 0 && (ended = first_ended(others)) >= 0) end = Clock::now() + kGrace;
  }
  if (ended >= 0)
    std::fprintf(stderr, "paceline: rank %d: rank %d is lost: its process has ended, and %s. The "
                 "wait for it cannot be stopped: this process ends.\n", rank, ended, late.c_str());
  else
    std::fprintf(stderr,
                 "paceline: rank %d: %s within %lld ms, and cannot be stopped: this process "
                 "ends. Do all ranks run? Raise start_timeout_ms (PACELINE_START_TIMEOUT_MS), "
                 "or take another MPI (PACELINE_MPI).\n",
                 rank, late.c_str(), static_cast<long long>(limit.count()));
  _exit(1);
}

StartDeadline::~StartDeadline() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  over_.notify_all();
  thread_.join();
}

}  // namespace paceline
