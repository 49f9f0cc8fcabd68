// The summary at MPI_Finalize: what was served, what passed, and why.
#pragma once

#include "comm_state.hpp"

namespace paceline::preload {

// On rank 0 of MPI_COMM_WORLD, to stderr, where the option asks for it.
void print_summary(const Counts& counts);

}  // namespace paceline::preload
