#include "runtime/progress/backoff.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include <doctest/doctest.h>

#include "runtime/progress/clock.hpp"

namespace paceline {
namespace {

// This thread and one that computes, on the same processor.
class Contended {
 public:
  Contended() {
    sched_getaffinity(0, sizeof allowed_, &allowed_);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
    other_ = std::thread([this] {
      while (!is_over_) pause();
    });
  }
  ~Contended() {
    is_over_ = true;
    other_.join();
    sched_setaffinity(0, sizeof allowed_, &allowed_);
  }

 private:
  cpu_set_t allowed_;
  std::atomic<bool> is_over_{false};
  std::thread other_;
};

// Returns the number of looks that took a time slice, until it sleeps; a pause takes nanoseconds.
int slices_given(Load load) {
  constexpr double kSliceS = 1.5e-3;
  int slices = 0;
  Backoff backoff(load);
  for (double before_s = now_s(); backoff.next() == Backoff::Next::again; before_s = now_s())
    slices += now_s() - before_s > kSliceS;
  return slices;
}

TEST_CASE("backoff: a wait that met a program that computes is followed by waits that sleep") {
  const Contended contended;
  if (slices_given(Load::alone) == 0) return;   // this kernel returns from every yield at once
  int least = slices_given(Load::alone);   // one may be taken away from it while it spins
  for (int tries = 0; tries < 4; ++tries) least = std::min(least, slices_given(Load::alone));
  CHECK(least == 0);
  CHECK(slices_given(Load::oversubscribed) > 0);
}

}  // namespace
}  // namespace paceline
