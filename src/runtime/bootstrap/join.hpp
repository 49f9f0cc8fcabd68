// Joining a world whose ranks an MPI has brought together.
#pragma once

#include <memory>

#include "runtime/communicator.hpp"
#include "runtime/world.hpp"
#include "transport/mpi/library.hpp"

namespace paceline {

// Initialises the library where nobody has; what threads it gives.
MpiThreads init_mpi(MpiLibrary& library);

// All ranks of an MPI communicator, as MpiLibrary::open takes it. The library is initialised.
// Collective over it. Neighbours talk through shared memory, others through MPI. `config` need not
// say rank and ranks.
Communicator join_mpi(MpiLibrary& library, const void* communicator, WorldConfig config);

}  // namespace paceline
