// A communicator of this rank alone, for calls of MPI that concern no other rank.
#pragma once

#include "host_mpi.hpp"

namespace paceline::preload {

// Made at the first call; returns errors instead of calling a handler. Throws a resource error if
// MPI makes none.
MPI_Comm alone();

void end_alone();   // before MPI ends

}  // namespace paceline::preload
