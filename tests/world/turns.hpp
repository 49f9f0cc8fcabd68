// Turns: a thread for each rank, of which one runs at a time, in an order that a seed decides.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/random.hpp"
#include "base/str.hpp"

namespace paceline::test {

class Turns {
 public:
  Turns(int ranks, std::uint64_t seed) : random_(seed), is_over_(std::size_t(ranks)) {}

  // Calls `live` for every rank; what went wrong.
  std::string run(const std::function<void(int)>& live) {
    std::string trouble;
    std::vector<std::thread> threads;
    for (int rank = 0; rank < int(is_over_.size()); ++rank)
      threads.emplace_back([&, rank] {
        wait_for(rank);
        try {
          live(rank);
        } catch (const std::exception& error) {
          trouble += str("rank ", rank, ": ", error.what(), "; ");
        }
        is_over_[std::size_t(rank)] = true;
        pass_on();
      });
    for (std::thread& thread : threads) thread.join();
    return trouble;
  }

  // By the rank whose turn it is: another one may run, for a moment or a long time.
  void pass(int rank) {
    if (remaining_-- > 0) return;
    pass_on();
    wait_for(rank);
  }

 private:
  static constexpr std::size_t kLengths[] = {1, 4, 30, 200};  // of turns, in looks at the clock

  void wait_for(int rank) {
    std::unique_lock lock(mutex_);
    passed_.wait(lock, [&] { return turn_ == rank; });
  }

  void pass_on() {
    if (std::ranges::all_of(is_over_, [](bool over) { return over; })) return;
    const std::lock_guard lock(mutex_);
    do turn_ = int(random_.below(is_over_.size()));
    while (is_over_[std::size_t(turn_)]);
    remaining_ = random_.below(kLengths[random_.below(std::size(kLengths))]);
    passed_.notify_all();
  }

  Random random_;
  std::vector<bool> is_over_;
  std::size_t remaining_ = 0;
  int turn_ = 0;
  std::mutex mutex_;
  std::condition_variable passed_;
};

}  // namespace paceline::test
