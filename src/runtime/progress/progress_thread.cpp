// The part of the session that goes on beside a program that computes: its own thread, and those
// who sleep until that has ended a call.
#include <pthread.h>

#include <chrono>
#include <functional>
#include <utility>

#include "runtime/progress/clock.hpp"
#include "runtime/progress/backoff.hpp"
#include "runtime/progress/session.hpp"

namespace paceline {
namespace {

constexpr int kSleepUs = 1000;  // at most, between two looks
constexpr double kAlertS = 0.002;
constexpr int kLookUpUs = 200;
constexpr int kGiveWay = 1000;   // pauses: some tens of microseconds, which it takes to wake up

}  // namespace

// Work comes in bursts. For a while after some the thread looks up by itself, so that a call that
// is started and waited for at once need not wake it; then it sleeps until it is woken.
void Session::background() {
  pthread_setname_np(pthread_self(), "paceline");
  std::unique_lock lock(mutex_);
  double worked_s = now_s();
  const auto unattended = [&] {
    return stop_ || !callbacks_.empty() || (has_work() && waiting_.load() == 0);
  };
  while (!stop_) {
    if (now_s() - worked_s < kAlertS) {
      work_.wait_for(lock, std::chrono::microseconds(kLookUpUs));
    } else {
      // Woken where somebody else has begun to wait it sleeps on, and must be woken again.
      work_.wait(lock, [&] {
        const bool wanted = unattended();
        asleep_ = !wanted;
        return wanted;
      });
    }
    if (!unattended()) continue;
    try {
      attend(lock);
    } catch (...) {   // it must not end the thread, nor be lost on those who wait
      if (!lock.owns_lock()) lock.lock();
      try {
        fail_under_way();
      } catch (...) {   // no memory even for that: what is under way is there to be tried again
      }
    }
    worked_s = now_s();
  }
  call_back(lock);
}

// Without the lock. Who drives a long call would take it again before a thread that waits for it is
// awake, and a more urgent call would begin when that one has ended.
void Session::give_way() const {
  for (int looks = 0; looks < kGiveWay && starting_.load(std::memory_order_relaxed) > 0; ++looks)
    pause();
}

void Session::attend(std::unique_lock<std::mutex>& lock) {
  Backoff patience(Load::beside_compute);
  double watched_s = now_s();
  call_back(lock);
  while (!stop_ && has_work() && waiting_.load() == 0) {
    if (progress()) patience.reset();
    call_back(lock);
    lock.unlock();
    if (patience.next() == Backoff::Next::sleep)
      transport_->rest(std::min(kSleepUs, sleep_us()), [this] { return can_progress(); });
    give_way();
    lock.lock();
    if (now_s() - watched_s < kWatchS) continue;
    watched_s = now_s();
    watch(watched_s);
  }
}

// One that is done without having landed, since it was stopped, has its callback called here and
// not there.
void Session::on_complete(ActiveOp& active, std::uint32_t start,
                          std::function<void(bool)> callback) {
  check_owner();
  {
    const std::lock_guard lock(mutex_);
    if (!active.operation->has_ended(start)) {
      active.on_complete = std::move(callback);
      return;
    }
  }
  active.tell(start);
  callback(!active.operation->has_failed(start));
}

void Session::wake_thread() {
  if (waiting_.load() == 0 && has_work()) rouse_thread();
}

void Session::rouse_thread() {
  if (thread_.joinable() && asleep_.exchange(false)) work_.notify_one();
}

// Whoever drives everything wakes those who sleep here: the thread, or another one that waits.
bool Session::sleep(ActiveOp& active, std::uint32_t start, int most_ms) {
  check_owner();
  if (!thread_.joinable()) return wait(active, start, 0, most_ms);   // nobody else would go on
  {
    std::unique_lock lock(mutex_);
    const std::uint64_t before = landed_;
    ++sleepers_;
    landing_.wait_for(lock, std::chrono::milliseconds(most_ms),
                      [&] { return active.operation->has_ended(start) || landed_ != before; });
    --sleepers_;
  }
  if (!active.operation->has_ended(start)) return false;
  if (active.operation->has_failed(start)) raise(active);
  active.tell(start);
  return true;
}

}  // namespace paceline
