// The summary at MPI_Finalize: what was served, what passed, and why.
#pragma once

#include "comm_state.hpp"

namespace paceline::preload {

// Where the calls are counted that the program makes, by their numbers in the stub.
void sum_up(const unsigned long* made);

// On rank 0 of MPI_COMM_WORLD, to stderr, where the option asks for it. Without it, too: that
// nothing was served, since Open MPI serves calls from Fortran past the stub.
void print_summary(const Counts& counts);

}  // namespace paceline::preload
