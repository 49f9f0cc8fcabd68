// Sockets: what ends a nap where an MPI talks over TCP.
//
// An MPI tells nobody which sockets are its own, so all connections of this process count. Nothing
// is read from them: they are only watched for something new, and one that is somebody else's costs
// a look.
#pragma once

#include <mutex>

namespace paceline::mpi {

class Sockets {
 public:
  Sockets();
  ~Sockets();
  Sockets(const Sockets&) = delete;

  // Looks for new connections, more seldom where there were none.
  void search(double now_s);
  // Sleeps; whether one of them ended it. Several threads may.
  bool rest(int timeout_us);

 private:
  bool watch(int socket);   // whether it is new

  int set_ = -1;   // an epoll instance; none: sleeps only
  std::mutex mutex_;
  double next_s_ = 0, pause_s_ = 0;
};

}  // namespace paceline::mpi
