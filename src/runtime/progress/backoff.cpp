#include "runtime/progress/backoff.hpp"

#include <sched.h>

#include "runtime/progress/clock.hpp"

namespace paceline {
namespace {

constexpr double kYieldsS = 5e-3;   // less than two time slices of Linux, of some 3 ms each
constexpr double kSliceS = 1e-3;    // a longer yield has met a program that computes
constexpr double kContendedS = 0.1;   // time for which that program is assumed to go on

thread_local double contended_until_s = 0;

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

Backoff::Backoff(Load load) : load_(load) {
  spins_ = load == Load::alone ? 300 : load == Load::oversubscribed ? 50 : 1;
  yields_ = load == Load::alone ? 1000 : load == Load::oversubscribed ? 100 : 0;
}

Backoff::Next Backoff::next() {
  ++looks_;
  if (looks_ <= spins_) {
    pause();
    return Next::again;
  }
  return looks_ <= spins_ + yields_ && yields_again() ? Next::again : Next::sleep;
}

// With more ranks than processors, a long yield has only met another rank's work.
bool Backoff::yields_again() {
  if (load_ != Load::alone) return yielding_.again();
  const double before_s = now_s();
  if (before_s < contended_until_s || !yielding_.again()) return false;
  const double after_s = now_s();
  if (after_s - before_s > kSliceS) contended_until_s = after_s + kContendedS;
  return true;
}

}  // namespace paceline
