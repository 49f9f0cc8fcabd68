// PollInterval: how long a rank sleeps between two looks for messages.
//
// If sockets are known to end its naps, they grow with the time since the last message, up to 1 ms,
// since MPI may go on by itself. Otherwise naps are short: no socket would end them.
#pragma once

#include <algorithm>
#include <mutex>
#include <utility>

namespace paceline::mpi {

class PollInterval {
 public:
  static constexpr int kPart = 8, kShortestUs = 50, kToldUs = 400, kLongestUs = 1000;
  static constexpr int kSure = 4, kSurest = 8;   // messages that sockets have told of

  // Something has been sent.
  void stir() {
    const std::lock_guard lock(mutex_);
    stirred_ = true;
  }

  // Records whether a look found a message; the first look after a nap says whether a message ended
  // it.
  void look(bool moved) {
    const std::lock_guard lock(mutex_);
    stirred_ |= moved;
    if (!moved || !slept_) return;
    trust_ = std::clamp(trust_ + (told_ ? 1 : -1), 0, kSurest);
    untold_ |= !told_;
    slept_ = false;
  }

  // A nap has ended; `told`: by a socket.
  void woke(bool told) {
    const std::lock_guard lock(mutex_);
    slept_ = true;
    told_ = told;
  }

  // True if a message has come since the last call that no socket told of.
  bool missed() {
    const std::lock_guard lock(mutex_);
    return std::exchange(untold_, false);
  }

  int next_us(double now_s, int most_us) {
    const std::lock_guard lock(mutex_);
    if (std::exchange(stirred_, false)) stirred_s_ = now_s;
    if (trust_ < kSure) return std::min(most_us, kShortestUs);
    const double part_us = 1e6 * (now_s - stirred_s_) / kPart;
    return std::min(most_us, static_cast<int>(std::clamp<double>(part_us, kToldUs, kLongestUs)));
  }

 private:
  std::mutex mutex_;   // several threads may wait
  bool stirred_ = true, slept_ = false, told_ = false, untold_ = false;
  int trust_ = 0;
  double stirred_s_ = 0;   // time at which next_us() found it stirred
};

}  // namespace paceline::mpi
