// ProgressThread: what goes on beside a program that computes: the session's own thread, and those
// who sleep until it has ended a call.
//
// A caller that waits drives everything itself. The thread works while something is under way that
// nobody waits for, and sleeps otherwise.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/progress/session_state.hpp"

namespace paceline {

class ProgressThread {
 public:
  ProgressThread(SessionState& state, Driver& driver) : state_(state), driver_(driver) {}

  // Without the lock.
  void start();
  void stop();   // returns when it has ended
  bool is_running() const { return thread_.joinable(); }
  bool is_current() const { return std::this_thread::get_id() == thread_.get_id(); }
  std::unique_lock<std::mutex> lock_to_start();   // a call: whoever drives another gives way
  void give_way() const;   // to those
  // Until the call or another one has ended. The thread must be running.
  void sleep(const Operation& operation, std::uint32_t start, int most_ms);

  // With the lock held.
  void wake();    // where there is work, and nobody waits
  void rouse();   // if it sleeps
  void tell_ended(ActiveOp& active);   // those who sleep; and its callback is due
  void call_back(std::unique_lock<std::mutex>& lock);   // what is due; without the lock meanwhile

  // Somebody waits, and drives everything meanwhile. The last one hands what is left to the thread.
  class Waiting {
   public:
    explicit Waiting(ProgressThread& thread) : thread_(thread) { ++thread_.waiting_; }
    ~Waiting() {
      if (--thread_.waiting_ != 0 || !thread_.is_running()) return;
      const std::lock_guard lock(thread_.state_.mutex);
      thread_.wake();
    }
    Waiting(const Waiting&) = delete;

   private:
    ProgressThread& thread_;
  };

 private:
  void run();
  void attend(std::unique_lock<std::mutex>& lock);

  SessionState& state_;
  Driver& driver_;
  std::condition_variable work_, ended_;
  int sleepers_ = 0;
  std::uint64_t ended_calls_ = 0;   // so far
  std::vector<std::pair<std::function<void(bool)>, bool>> callbacks_;   // due, with their argument
  std::atomic<int> starting_{0};    // threads that wait for the lock, to start a call
  std::atomic<int> waiting_{0};
  std::atomic<bool> asleep_{true};  // it has to be woken
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace paceline
