// Profiler: records every collective call of an MPI program, served by Paceline or by the host.
#pragma once

#include "stub.h"

namespace paceline::preload {

// True if the options ask for a profile. Throws a usage error if they are wrong.
bool is_profile_wanted();

// Puts recording functions into the table and keeps the former ones, which they call.
void record_calls(paceline_function table[PACELINE_STUB_CALLS]);

// Collective, from within MPI_Init: opens the file of this rank and compares the ranks' clocks.
void begin_profile();

}  // namespace paceline::preload
