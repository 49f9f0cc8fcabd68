// ProgressThread: a session's own thread, which drives calls while the program computes. It also
// keeps the callbacks that are due, and the threads that sleep until a call ends.
//
// A caller that waits drives all calls itself. The thread works while calls are under way and no
// caller waits, and sleeps otherwise. With Progress::caller it is never started: then callers alone
// drive calls and run callbacks; with Progress::when_started once a program needs it.
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

  // These are called without the lock.
  void start();  // does nothing if it was started. Throws a resource error if there is no thread
  void stop();   // returns when the thread has ended; does nothing if it was not started
  bool is_running() const { return is_running_.load(std::memory_order_acquire); }
  bool is_current() const {
    return is_running() && std::this_thread::get_id() == thread_.get_id();
  }
  std::unique_lock<std::mutex> lock_to_start();   // takes the lock to start a call
  void give_way() const;   // lets threads in lock_to_start() go first; called after unlocking
  // Returns when this call or another one has ended, or after most_ms. The thread must be running.
  void sleep(const Operation& operation, std::uint32_t start, int most_ms);

  // These require the lock.
  void wake();    // wakes the thread if there is work and no caller waits
  void rouse();   // wakes the thread in any case; does nothing if it is awake, or was not started
  void tell_ended(ActiveOp& active);   // wakes threads in sleep(); makes the call's callback due
  // Runs the callbacks that are due, and releases the lock for them. A thread that has driven calls
  // does this afterwards, unless it holds locks of its own; then the progress thread does. A
  // callback must not throw.
  void call_back(std::unique_lock<std::mutex>& lock);

  // Marks that its thread waits in a call: that thread drives all calls, instead of the progress
  // thread. The last one wakes the progress thread for the remaining work. Used without the lock.
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
  void attend(std::unique_lock<std::mutex>& lock);   // drives while there is work and none waits

  SessionState& state_;
  Driver& driver_;
  std::condition_variable work_, ended_;   // the thread waits for work, sleep() for ended calls
  int sleepers_ = 0;                // threads in sleep()
  std::uint64_t ended_calls_ = 0;   // so far
  std::vector<std::pair<std::function<void(bool)>, bool>> callbacks_;   // due, with their argument
  std::atomic<int> starting_{0};    // threads that wait for the lock to start a call
  std::atomic<int> waiting_{0};     // number of Waiting objects
  std::atomic<bool> asleep_{true};  // the thread waits for work_ without a limit
  bool stop_ = false;
  std::atomic<bool> is_running_{false};   // thread_ is set, and stays
  std::mutex starts_;
  std::thread thread_;
};

}  // namespace paceline
