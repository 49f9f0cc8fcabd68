// How the mpi transport cuts and waits. Equal on all ranks of a world.
#pragma once

#include <cstddef>

namespace paceline {

struct MpiConfig {
  std::size_t eager_bytes = 32u << 10;   // a message up to here travels with its header
  std::size_t chunk_bytes = 256u << 10;  // a longer one in pieces of this size or more
  // Waits inside MPI where there is nothing to do, without ever looking up: for simulators, where
  // time passes in MPI calls only. For one thread; nothing can wake it but a message.
  bool blocking_sleep = false;
};

}  // namespace paceline
