// Presence: whether every process of MPI_COMM_WORLD has loaded this library. LD_PRELOAD reaches
// some of them only where a launcher does not pass it on to other nodes.
#pragma once

namespace paceline::preload {

// Collective over those that have loaded it, from within MPI_Init. Each publishes a name, which its
// launcher keeps; rank 0 looks for all names and answers. No message is sent to a rank that is not
// there: it could take it for one of the program's. Waits half a minute at most for missing ranks,
// twice that for rank 0, and less if start_timeout_ms is less; prints which are missing. All ranks
// count as present if the launcher keeps no names, or if the program was spawned. Throws a resource
// error if MPI fails.
void meet_ranks();

// False if meet_ranks() has missed a rank: then the host makes all calls of this program.
bool are_all_present();

}  // namespace paceline::preload
