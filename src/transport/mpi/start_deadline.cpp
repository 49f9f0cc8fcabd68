#include "transport/mpi/start_deadline.hpp"

#include <unistd.h>

#include <cstdio>

namespace paceline {
namespace {

// Whatever gives up by itself at the limit says more, and comes first.
constexpr std::chrono::seconds kGrace{5};

}  // namespace

StartDeadline::StartDeadline(int rank, const std::string& late, std::chrono::milliseconds limit)
    : thread_([this, rank, late, limit] {
        std::unique_lock lock(mutex_);
        if (over_.wait_for(lock, limit + kGrace, [this] { return is_over_; })) return;
        std::fprintf(stderr,
                     "paceline: rank %d: %s within %lld ms, and cannot be stopped: this process "
                     "ends. Do all ranks run? Raise start_timeout_ms (PACELINE_START_TIMEOUT_MS), "
                     "or take another MPI (PACELINE_MPI).\n",
                     rank, late.c_str(), static_cast<long long>(limit.count()));
        _exit(1);
      }) {}

StartDeadline::~StartDeadline() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  over_.notify_all();
  thread_.join();
}

}  // namespace paceline
