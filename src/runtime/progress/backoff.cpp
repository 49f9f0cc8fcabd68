#include "runtime/progress/backoff.hpp"

#include <sched.h>

#include "runtime/progress/clock.hpp"

namespace paceline {
namespace {

constexpr double kYieldsS = 5e-3;   // less than two time slices of Linux, of some 3 ms each

}  // namespace

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

bool YieldBudget::again() {
  const double now = now_s();
  if (since_s_ == 0) since_s_ = now;
  if (now - since_s_ > kYieldsS) return false;
  sched_yield();
  return true;
}

Backoff::Backoff(Load load) {
  spins_ = load == Load::alone ? 300 : load == Load::oversubscribed ? 50 : 1;
  yields_ = load == Load::alone ? 1000 : load == Load::oversubscribed ? 100 : 0;
}

Backoff::Next Backoff::next() {
  ++looks_;
  if (looks_ <= spins_) {
    pause();
    return Next::again;
  }
  return looks_ <= spins_ + yields_ && yielding_.again() ? Next::again : Next::sleep;
}

}  // namespace paceline
