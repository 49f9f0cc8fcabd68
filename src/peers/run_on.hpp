// run_on: makes a call of an MPI's own, over the binary interface that its world speaks.
#pragma once

#include "peers/mpi_calls.hpp"

namespace paceline::peers {

// Whether the world is of that interface; then the call has been made.
bool run_mpich(MpiWorld& world, const MpiCall& call);
bool run_openmpi(MpiWorld& world, const MpiCall& call);
bool run_standard(MpiWorld& world, const MpiCall& call);

}  // namespace paceline::peers
