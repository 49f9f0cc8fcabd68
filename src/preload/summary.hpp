// The summary at MPI_Finalize: served calls, passed calls, and the reasons.
#pragma once

#include "comm_state.hpp"

namespace paceline::preload {

// Adds the host's calls to the summary, from the counters of the stub.
void count_host_calls(const unsigned long* counters);

// Prints on rank 0 of MPI_COMM_WORLD, to stderr, if the option asks for it.
void print_summary(const Counts& counts);

}  // namespace paceline::preload
