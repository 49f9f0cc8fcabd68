// The summary at MPI_Finalize: what was served, what passed, and why.
#pragma once

#include "comm_state.hpp"

namespace paceline::preload {

// The summary has the host's calls as well, from the counters of the stub.
void count_host_calls(const unsigned long* counters);

// On rank 0 of MPI_COMM_WORLD, to stderr, if the option asks for it. Even if it does not: a line
// where nothing was served because Open MPI's Fortran library passes the stub by.
void print_summary(const Counts& counts);

}  // namespace paceline::preload
