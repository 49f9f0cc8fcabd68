// Joining: makes a communicator of Paceline from one of MPI.
#pragma once

#include "comm_state.hpp"

namespace paceline::preload {

// Writes rank, ranks, `why` and `joins_in` into the state. Not collective.
void describe(MPI_Comm comm, CommState& state);

// Called by all ranks of `from` that have made a communicator, which some of them may not be in; if
// `from` is null, by those of the new one alone. Its ranks know afterwards whether Paceline is to
// serve it, so that a call that must not wait for others can join. They ask each other only where
// `from` is not in the world; the first communicator of all processes joins at once, as the world.
// Reports errors to the new communicator.
void attach(MPI_Comm from, MPI_Comm made) noexcept;

// True if join() would wait for other ranks: they have yet to agree, or to make a world.
bool waits_to_join(const CommState& state);

// Joins `comm`. Collective over `comm`; afterwards state.communicator is valid on all ranks or on
// none. If it may wait the ranks agree anew, since one may have changed its user; if not, they have
// agreed before. The first communicator of all processes becomes the world: later ones are groups
// of it. A communicator joined before that is a world of its own.
void join(MPI_Comm comm, CommState& state, bool may_wait);

// Releases the world after the states have been emptied.
void leave_worlds();

}  // namespace paceline::preload
