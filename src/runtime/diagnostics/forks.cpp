#include "runtime/diagnostics/forks.hpp"

#include <pthread.h>

#include <mutex>

namespace paceline {
namespace {

void count() { forks_counted.fetch_add(1, std::memory_order_relaxed); }

}  // namespace

void count_forks() {
  static std::once_flag once;
  std::call_once(once, [] { pthread_atfork(nullptr, nullptr, count); });
}

}  // namespace paceline
