#include "transport/vigil.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace paceline {
namespace {

constexpr int kEnded = -1;

}  // namespace

Vigil::~Vigil() {
  for (const auto& [rank, process] : processes_)
    if (process != kEnded) close(process);
}

// Where the system has no such descriptors, nobody is known.
void Vigil::know(int rank, int process_id) {
  if (processes_.contains(rank)) return;
  const int process = static_cast<int>(syscall(SYS_pidfd_open, process_id, 0));
  if (process >= 0) processes_[rank] = process;
  else if (errno == ESRCH) processes_[rank] = kEnded;
}

bool Vigil::has_ended(int process) {
  if (process == kEnded) return true;
  pollfd watch{process, POLLIN, 0};
  return poll(&watch, 1, 0) == 1;
}

bool Vigil::is_set(Store& store, const std::string& key) {
  try {
    (void)store.get(key, std::chrono::milliseconds(1));
    return true;
  } catch (const Error& error) {
    if (error.fault() != Fault::timeout) throw;
    return false;
  }
}

}  // namespace paceline
