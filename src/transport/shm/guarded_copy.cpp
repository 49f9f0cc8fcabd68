#include "transport/shm/guarded_copy.hpp"

#include <setjmp.h>
#include <signal.h>

#include <atomic>
#include <cstring>

namespace paceline {
namespace {

// Where the copy of this thread goes on without its page; null: it makes none. Memory that is there
// from the thread's start, since a signal cannot ask for any.
[[gnu::tls_model("initial-exec")]] thread_local sigjmp_buf* volatile way_out = nullptr;

struct sigaction before;   // who was there

void on_bus_error(int signal, siginfo_t* about, void* context) {
  if (way_out) siglongjmp(*way_out, 1);
  if (before.sa_flags & SA_SIGINFO) return before.sa_sigaction(signal, about, context);
  if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
    return before.sa_handler(signal);
  sigaction(signal, &before, nullptr);   // it happens again, and ends the process
}

bool watch() {
  struct sigaction ours {};
  ours.sa_sigaction = on_bus_error;
  ours.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;   // what it jumps out of blocks nothing
  sigemptyset(&ours.sa_mask);
  return sigaction(SIGBUS, &ours, &before) == 0;
}

}  // namespace

bool copy_guarded(void* to, const void* from, std::size_t bytes) {
  [[maybe_unused]] static const bool is_watched = watch();
  sigjmp_buf here;
  if (sigsetjmp(here, 0)) {
    way_out = nullptr;
    return false;
  }
  way_out = &here;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  std::memcpy(to, from, bytes);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  way_out = nullptr;
  return true;
}

}  // namespace paceline
