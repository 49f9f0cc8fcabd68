// Tells the program of an error in a call that Paceline serves.
#pragma once

#include "host_mpi.hpp"

namespace paceline::preload {

// Called in a handler: prints the current exception and calls the communicator's error handler,
// which by default ends the program. Returns MPI's code.
int report(const char* name, MPI_Comm comm);

// Throws a resource error if PMPI_<call> has returned this code and it is an error.
void check(int code, const char* call);

}  // namespace paceline::preload
