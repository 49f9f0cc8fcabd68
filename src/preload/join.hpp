// Joining: makes a communicator of Paceline from one of MPI.
#pragma once

#include "comm_state.hpp"

namespace paceline::preload {

// Writes rank, ranks, `why` and `joins_in` into the state. Not collective.
void describe(MPI_Comm comm, CommState& state);

// Joins `comm`. Collective over `comm`; afterwards state.communicator is valid on all ranks or on
// none. The first communicator of all processes becomes the world: later ones are groups of it and
// need no memory. A communicator joined before that is a world of its own.
void join(MPI_Comm comm, CommState& state);

// Releases the world after the states have been emptied.
void leave_worlds();

}  // namespace paceline::preload
