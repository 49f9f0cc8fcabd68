// Sockets: naps that end when a TCP connection of this process has something new.
//
// No MPI tells which sockets are its own, so all connections of this process count. They are
// watched but never read; one that belongs to other code costs a look.
#pragma once

#include <mutex>

namespace paceline::mpi {

class Sockets {
 public:
  Sockets();
  ~Sockets();
  Sockets(const Sockets&) = delete;

  // Looks for new connections, more seldom after searches that found none.
  void search(double now_s);
  // Sleeps; returns true if a socket ended it. Several threads may call it.
  bool rest(int timeout_us);

 private:
  bool watch(int socket);   // true if it is new

  int set_ = -1;   // an epoll instance; -1: sleeps only
  std::mutex mutex_;
  double next_s_ = 0, pause_s_ = 0;
};

}  // namespace paceline::mpi
