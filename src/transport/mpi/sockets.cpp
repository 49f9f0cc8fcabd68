#include "transport/mpi/sockets.hpp"

#include <dirent.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>

namespace paceline::mpi {
namespace {

constexpr double kFirstPauseS = 0.02, kLongestPauseS = 5;   // between two searches
constexpr int kAtOnce = 64;

bool is_connection(int descriptor) {
  int type = 0;
  socklen_t length = sizeof(type);
  if (getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &length) != 0 || type != SOCK_STREAM)
    return false;
  sockaddr_storage peer = {};
  length = sizeof(peer);
  if (getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &length) != 0) return false;
  return peer.ss_family == AF_INET || peer.ss_family == AF_INET6;
}

timespec of_us(int us) { return {us / 1'000'000, us % 1'000'000 * 1000L}; }

}  // namespace

Sockets::Sockets() : set_(epoll_create1(EPOLL_CLOEXEC)), pause_s_(kFirstPauseS) {}

Sockets::~Sockets() {
  if (set_ >= 0) close(set_);
}

// Edge-triggered: data that its owner has not read wakes a rank once. A closed socket leaves the
// set by itself.
bool Sockets::watch(int socket) {
  epoll_event event = {};
  event.events = EPOLLIN | EPOLLOUT | EPOLLET;
  return epoll_ctl(set_, EPOLL_CTL_ADD, socket, &event) == 0;
}

void Sockets::search(double now_s) {
  const std::lock_guard lock(mutex_);
  if (set_ < 0 || now_s < next_s_) return;
  DIR* const all = opendir("/proc/self/fd");
  if (!all) return;
  bool found = false;
  while (const dirent* entry = readdir(all)) {
    char* end = nullptr;
    const int descriptor = static_cast<int>(std::strtol(entry->d_name, &end, 10));
    if (*end == '\0' && is_connection(descriptor)) found |= watch(descriptor);
  }
  closedir(all);
  pause_s_ = found ? kFirstPauseS : std::min(2 * pause_s_, kLongestPauseS);
  next_s_ = now_s + pause_s_;
}

bool Sockets::rest(int timeout_us) {
  const timespec most = of_us(timeout_us);
  if (set_ < 0) {
    nanosleep(&most, nullptr);
    return false;
  }
  pollfd any = {set_, POLLIN, 0};
  if (ppoll(&any, 1, &most, nullptr) <= 0) return false;
  epoll_event events[kAtOnce];
  return epoll_wait(set_, events, kAtOnce, 0) > 0;   // which ones: MPI will see
}

}  // namespace paceline::mpi
