// After ranks have made calls that differ, such as broadcasts of other lengths: those that met in
// the wrong call are refused, and the communicator is the host MPI's from there on.
//
// Ranks hear of it in different calls. One that has ended the wrong call rightly, as the root of a
// broadcast does, may be calls ahead. At the first call after the wrong one all ranks agree how far
// they are: calls that some rank has ended fail on the others, the rest are the host's.
#pragma once

#include "base/error.hpp"
#include "comm_state.hpp"

namespace paceline::preload {

// Whether the host takes this call, which has failed here because calls differ; else the error is
// to be reported. Waits for the others' next calls, unless this is the wrong call itself.
bool goes_on_by_host(CommState& state, MPI_Comm comm, const Error& error);

// Of a communicator which is the host's for that reason: throws if the call is one that another
// rank has ended.
void check_not_ended(CommState& state);

}  // namespace paceline::preload
