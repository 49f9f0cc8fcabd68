// Progress of the host MPI while a rank waits in a call of Paceline.
#pragma once

namespace paceline::preload {

// Prepares progress_mpi(), once; end_progress() ends it, before MPI does. Throws a resource error.
void begin_progress();
void end_progress();

// Makes progress in MPI while a rank waits in a call of Paceline: its peers may need its MPI
// messages before they come. Testing a receive that never completes makes every MPI do so;
// MPI_Iprobe does not in MPICH 4.0 if the rank is alone in the communicator. Returns true if
// anything moved, as far as the host tells.
bool progress_mpi();

}  // namespace paceline::preload
