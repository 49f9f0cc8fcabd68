// shm: ranks on one machine, through memory that they share. Needs no MPI.
//
// Every rank owns an inbox: one ring per peer. A message that fits a cell is sent at once (eager),
// unless its peer has too much of that kind unread; a longer one sends a request, and streams
// through the ring once the receiver has granted it. So a receiver can always empty its rings,
// whatever order it wants messages in, and what it has to keep aside is bounded.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transport/store.hpp"
#include "transport/transport.hpp"

namespace paceline {

struct ShmConfig {
  int rank = 0;
  int ranks = 1;
  std::string world = "world";  // names this world in the store
  std::string dir = "/dev/shm";
  std::size_t bytes = 32u << 20;  // of all rings together, within limits per ring
  int start_timeout_ms = 300000;
};

// Returns once every rank has attached to every other; throws on all of them where one cannot.
std::unique_ptr<Transport> make_shm(Store& store, const ShmConfig& config);

}  // namespace paceline
