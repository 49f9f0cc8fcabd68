// Settings of an MPI that is initialised here. Variables already in the environment stay.
#pragma once

#include "transport/bootstrap.hpp"
#include "transport/mpi/library.hpp"

namespace paceline {

// Chooses libfabric in an MPICH that has UCX as well. MPICH prefers UCX, over which we cannot post
// receives from any source (transport/mpi/netmod.hpp).
void choose_netmod(const MpiLibrary& library);

// Makes UCX share no memory. UCX expects ranks of one machine to share it: if some do not
// (Nodes::is_split), MPI_Init would fail.
void share_no_memory(const MpiLibrary& library);

// Gives Intel MPI buffers of 17 KiB, which hold 16 KiB and our header (docs/design/0012, 0022).
// Between nodes it may send through libfabric's RxM, by verbs or by TCP of Debian's libfabric,
// which asks before it sends more than a buffer holds, by default 16 KiB. Ranks whose buffers
// differ would wait for each other for ever; a usage error on all ranks prevents that. Collective.
void widen_buffers(const MpiLibrary& library, Bootstrap& meeting);

}  // namespace paceline
