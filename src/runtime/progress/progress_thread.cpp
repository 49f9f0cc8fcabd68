#include "runtime/progress/progress_thread.hpp"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <system_error>

#include "base/error.hpp"
#include "runtime/progress/backoff.hpp"
#include "runtime/progress/clock.hpp"

namespace paceline {
namespace {

constexpr int kSleepUs = 1000;   // longest sleep between two looks while there is work
constexpr double kAlertS = 0.002;   // time after the last work in which it looks for more
constexpr int kLookUpUs = 200;      // time between two such looks
constexpr int kGiveWay = 1000;   // pauses: some tens of microseconds, as long as a thread wakes up

}  // namespace

void ProgressThread::start() try {
  if (is_running()) return;
  const std::lock_guard lock(starts_);
  if (is_running()) return;
  thread_ = std::thread([this] { run(); });
  is_running_.store(true, std::memory_order_release);
} catch (const std::system_error& error) {
  fail(Fault::resource, "the system gives this rank no thread that drives its calls (",
       error.what(), "); PACELINE_PROGRESS=caller needs none.");
}

void ProgressThread::stop() {
  {
    const std::lock_guard lock(state_.mutex);
    stop_ = true;
  }
  work_.notify_all();
  state_.transport->wake();
  if (is_running()) thread_.join();
}

// Work comes in bursts. So the thread polls for kAlertS after the last work, and a call that is
// started and waited for at once need not wake it. Then it sleeps until it is woken.
void ProgressThread::run() {
  pthread_setname_np(pthread_self(), "paceline");
  std::unique_lock lock(state_.mutex);
  double worked_s = now_s();
  const auto unattended = [&] {
    return stop_ || !callbacks_.empty() || (state_.has_work() && waiting_.load() == 0);
  };
  while (!stop_) {
    if (now_s() - worked_s < kAlertS) {
      work_.wait_for(lock, std::chrono::microseconds(kLookUpUs));
    } else {
      // If a caller has begun to wait meanwhile, the thread sleeps on and sets asleep_ again.
      work_.wait(lock, [&] {
        const bool wanted = unattended();
        asleep_ = !wanted;
        return wanted;
      });
    }
    if (!unattended()) continue;
    try {
      attend(lock);
    } catch (...) {   // must not end the thread; the calls report the error
      if (!lock.owns_lock()) lock.lock();
      try {
        driver_.fail_under_way();
      } catch (...) {   // no memory even for that: the calls stay under way, to be tried again
      }
    }
    worked_s = now_s();
  }
  call_back(lock);
}

void ProgressThread::attend(std::unique_lock<std::mutex>& lock) {
  Backoff patience(Load::beside_compute);
  double watched_s = now_s();
  call_back(lock);
  while (!stop_ && state_.has_work() && waiting_.load() == 0) {
    if (driver_.progress()) patience.reset();
    call_back(lock);
    lock.unlock();
    if (patience.next() == Backoff::Next::sleep)
      state_.transport->rest(std::min(kSleepUs, state_.sleep_us()),
                             [this] { return state_.can_progress(); });
    give_way();
    lock.lock();
    if (now_s() - watched_s < SessionState::kWatchS) continue;
    watched_s = now_s();
    driver_.watch(watched_s);
  }
}

std::unique_lock<std::mutex> ProgressThread::lock_to_start() {
  ++starting_;
  std::unique_lock lock(state_.mutex);
  --starting_;
  return lock;
}

// Without this, a thread that drives a long call would retake the lock before a waiting thread is
// awake, and a more urgent call would begin only after the long one.
void ProgressThread::give_way() const {
  for (int looks = 0; looks < kGiveWay && starting_.load(std::memory_order_relaxed) > 0; ++looks)
    pause();
}

void ProgressThread::wake() {
  if (waiting_.load() == 0 && state_.has_work()) rouse();
}

void ProgressThread::rouse() {
  if (is_running() && asleep_.exchange(false)) work_.notify_one();
}

void ProgressThread::tell_ended(ActiveOp& active) {
  ++ended_calls_;
  if (active.on_complete) {
    active.is_observed = true;
    callbacks_.emplace_back(std::exchange(active.on_complete, nullptr),
                            !active.operation->error());
    rouse();   // the thread that drives may hold locks of its own, and so not run callbacks
  }
  if (sleepers_ > 0) ended_.notify_all();
}

// Loops, since a callback may start a call that ends at once.
void ProgressThread::call_back(std::unique_lock<std::mutex>& lock) {
  while (!callbacks_.empty()) {
    auto due = std::exchange(callbacks_, {});
    lock.unlock();
    for (const auto& [callback, ok] : due) callback(ok);
    due.clear();   // the callbacks' destructors may take the lock
    lock.lock();
  }
}

// The thread that drives the calls wakes the sleepers: the progress thread, or a waiting caller.
void ProgressThread::sleep(const Operation& operation, std::uint32_t start, int most_ms) {
  std::unique_lock lock(state_.mutex);
  const std::uint64_t before = ended_calls_;
  ++sleepers_;
  ended_.wait_for(lock, std::chrono::milliseconds(most_ms),
                  [&] { return operation.has_ended(start) || ended_calls_ != before; });
  --sleepers_;
}

}  // namespace paceline
