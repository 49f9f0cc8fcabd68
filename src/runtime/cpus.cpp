#include "runtime/cpus.hpp"

#include <sched.h>

namespace paceline {

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

Patience::Patience(Company company) {
  spins_ = company == Company::alone ? 300 : company == Company::crowded ? 50 : 4;
  yields_ = company == Company::alone ? 1000 : company == Company::crowded ? 100 : 0;
}

Patience::Next Patience::next() {
  ++looks_;
  if (looks_ <= spins_) {
    pause();
    return Next::again;
  }
  if (looks_ > spins_ + yields_) return Next::sleep;
  sched_yield();
  return Next::again;
}

}  // namespace paceline
