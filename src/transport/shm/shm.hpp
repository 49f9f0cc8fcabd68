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

#include "transport/bootstrap.hpp"
#include "transport/transport.hpp"

namespace paceline {

struct ShmConfig {
  std::string dir = "/dev/shm";
  std::size_t bytes = 32u << 20;  // of all rings together, within limits per ring
  std::size_t stage_bytes = 8u << 20;  // of a communicator's stages together, within limits each
  // Numbers of the ranks in the world, in order; empty: as in the meeting.
  std::vector<int> names = {};
  std::string single_copy = "auto";   // copies between ranks' memory: see PeerMemory
  int stopped_ms = 5000;   // time to wait for a rank that a signal has stopped; 0: for ever
};

// Makes the transport among the ranks of a meeting. Returns once every rank has attached to every
// other; throws on all of them if one cannot. Always meets twice, so that several can be made in
// parts of a meeting.
std::unique_ptr<Transport> make_shm(Bootstrap& meeting, const ShmConfig& config);

}  // namespace paceline
