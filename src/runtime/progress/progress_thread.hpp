// ProgressThread: a session's own thread, which drives calls beside a program that computes; the
// threads that sleep until it has ended one; and callbacks.
//
// A caller that waits drives everything itself. The thread works while something is under way that
// nobody waits for, and sleeps otherwise. With Progress::caller it is never started: then callers
// alone drive, and call the callbacks.
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
  void stop();   // returns when it has ended; nothing if it was not started
  bool is_running() const { return thread_.joinable(); }
  bool is_current() const { return std::this_thread::get_id() == thread_.get_id(); }
  std::unique_lock<std::mutex> lock_to_start();   // to start a call with: others give way
  void give_way() const;   // after unlocking: lets those who wait in lock_to_start() go first
  // Returns when this call or another one has ended, or after most_ms. The thread must be running.
  void sleep(const Operation& operation, std::uint32_t start, int most_ms);

  // With the lock held.
  void wake();    // if there is work and nobody waits, so that the thread has to do it
  void rouse();   // in any case; nothing happens if it is awake, or was not started
  void tell_ended(ActiveOp& active);   // wakes who sleeps in sleep(); its callback becomes due
  // Calls the callbacks that are due, without the lock. Whoever has driven does so afterwards,
  // unless it holds locks of its own; the thread does it for those. A callback must not throw.
  void call_back(std::unique_lock<std::mutex>& lock);

  // While it lives its thread waits in a call and drives everything, and the progress thread does
  // not. The last one to go wakes the progress thread for what is left. Without the lock.
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
  void attend(std::unique_lock<std::mutex>& lock);   // drives while there is work and nobody waits

  SessionState& state_;
  Driver& driver_;
  std::condition_variable work_, ended_;   // the thread waits for work, sleep() for ended calls
  int sleepers_ = 0;                // threads in sleep()
  std::uint64_t ended_calls_ = 0;   // so far
  std::vector<std::pair<std::function<void(bool)>, bool>> callbacks_;   // due, with their argument
  std::atomic<int> starting_{0};    // threads that wait for the lock, to start a call
  std::atomic<int> waiting_{0};     // Waitings that live
  std::atomic<bool> asleep_{true};  // it waits for work_ without a limit, and has to be woken
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace paceline
