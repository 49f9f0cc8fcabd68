// How a communicator of MPI becomes one of Paceline.
#pragma once

#include "comm_state.hpp"

namespace paceline::preload {

// Writes rank, ranks, `why` and `joins_in` into the state. Not collective.
void describe(MPI_Comm comm, CommState& state);

// Joins it. Collective over `comm`; on every rank its communicator is valid, or on none. The
// first communicator of all processes becomes the world: later ones are groups of it, and cost no
// memory. One that is joined before is a world of its own.
void join(MPI_Comm comm, CommState& state);

// Lets go of the world; the states have been emptied.
void leave_worlds();

}  // namespace paceline::preload
