// Profiler: records every collective call that a program of MPI makes, whoever serves it.
#pragma once

#include "stub.h"

namespace paceline::preload {

// Whether the options ask for a profile. Throws a usage error where they are wrong.
bool is_profile_wanted();

// Puts functions that record into the table and keeps those that are there: they do the work.
void record_calls(paceline_function table[PACELINE_STUB_CALLS]);

// Collective, from within MPI_Init: opens the file of this rank and compares the ranks' clocks.
void begin_profile();

}  // namespace paceline::preload
