// Settings of the mpi transport, equal on all ranks of a world.
#pragma once

#include <cstddef>

namespace paceline {

struct MpiConfig {
  std::size_t eager_bytes = 32u << 10;   // a message up to here travels with its header
  std::size_t chunk_bytes = 256u << 10;  // a longer one in pieces of this size or more
  // Blocks inside MPI when there is nothing to do, for simulators, where time passes in MPI calls
  // only. For one thread; only a message wakes it.
  bool blocking_sleep = false;
};

}  // namespace paceline
