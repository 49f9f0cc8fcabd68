// Recovery after ranks have made calls that differ, such as broadcasts of different lengths: the
// wrong call fails, and the host MPI serves the communicator from then on.
//
// Ranks learn of it in different calls. A rank that has ended the wrong call without an error, such
// as the root of a broadcast, may be some calls ahead. At the first call after the wrong one all
// ranks agree how far they are: calls that a rank has ended fail on the others; the host serves the
// rest.
#pragma once

#include "base/error.hpp"
#include "comm_state.hpp"

namespace paceline::preload {

// True if the host takes this call, which failed because calls differ; else the caller reports the
// error. Waits for the next calls of the other ranks, unless this is the wrong call itself.
bool goes_on_by_host(CommState& state, MPI_Comm comm, const Error& error);

// Throws if the communicator is the host's for that reason and another rank has ended this call.
void check_not_ended(CommState& state);

}  // namespace paceline::preload
