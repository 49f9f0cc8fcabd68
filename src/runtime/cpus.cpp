#include "runtime/cpus.hpp"

#include <sched.h>

#include "runtime/clock.hpp"

namespace paceline {
namespace {

constexpr double kYieldsS = 5e-3;   // time slices are of some 3 ms

}  // namespace

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

bool Yields::again() {
  const double now = now_s();
  if (since_s_ == 0) since_s_ = now;
  if (now - since_s_ > kYieldsS) return false;
  sched_yield();
  return true;
}

Patience::Patience(Company company) {
  spins_ = company == Company::alone ? 300 : company == Company::oversubscribed ? 50 : 1;
  yields_ = company == Company::alone ? 1000 : company == Company::oversubscribed ? 100 : 0;
}

Patience::Next Patience::next() {
  ++looks_;
  if (looks_ <= spins_) {
    pause();
    return Next::again;
  }
  return looks_ <= spins_ + yields_ && yielding_.again() ? Next::again : Next::sleep;
}

}  // namespace paceline
