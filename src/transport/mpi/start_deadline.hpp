// StartDeadline: ends the process if this lives too long, or if another rank has ended meanwhile.
//
// An MPI that waits for a rank that has died cannot be called off, and most wait for ever, in their
// initialisation as well as in the first calls after it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "transport/process.hpp"

namespace paceline {

class StartDeadline {
 public:
  // `late`: what has not happened, such as "MPI has not started", goes to stderr. `others`: ranks
  // whose processes must not end before that.
  StartDeadline(int rank, const std::string& late, std::chrono::milliseconds limit,
                const Watches& others = {});
  ~StartDeadline();
  StartDeadline(const StartDeadline&) = delete;
  StartDeadline& operator=(const StartDeadline&) = delete;

 private:
  void watch(int rank, const std::string& late, std::chrono::milliseconds limit,
             const Watches& others);

  std::mutex mutex_;
  std::condition_variable over_;
  bool is_over_ = false;
  std::thread thread_;   // last: it uses the others
};

}  // namespace paceline
