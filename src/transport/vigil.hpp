// Vigil: waits for what other ranks put into a store, and sees meanwhile whether they still live.
#pragma once

#include <algorithm>
#include <chrono>
#include <string>

#include "base/error.hpp"
#include "transport/process.hpp"
#include "transport/store.hpp"

namespace paceline {

class Vigil {
 public:
  // Takes the process of a rank on this machine, whose number that rank has proven.
  void know(int rank, int process_id);
  // Watches that process, by the descriptor that exists of it already, if there is one.
  SharedWatch watch(int rank, int process_id) const;
  const Watches& processes() const { return processes_; }
  void forget_all() { processes_.clear(); }   // and give back their descriptors
  // Returns a known rank whose process has ended and that has yet to set key(rank); -1: none.
  template <class Key>
  int missing(Store& store, Key&& key) const {
    for (const auto& [rank, process] : processes_)
      if (process->has_ended() && !is_set(store, key(rank))) return rank;
    return -1;
  }
  // Waits for the key as the store does, and calls look() twice a second.
  template <class Look>
  static std::string get(Store& store, const std::string& key, std::chrono::milliseconds timeout,
                         Look&& look) {
    const auto end = Clock::now() + timeout;
    while (true) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
      try {
        return store.get(key, std::clamp(left, std::chrono::milliseconds(1), kBetweenLooks));
      } catch (const Error& error) {
        if (error.fault() != Fault::timeout) throw;
      }
      look();
      if (Clock::now() >= end) nobody_set(key, timeout);
    }
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kBetweenLooks{500};

  static bool is_set(Store& store, const std::string& key);

  Watches processes_;
};

}  // namespace paceline
