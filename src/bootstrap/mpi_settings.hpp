// What an MPI is told before it is initialised here, unless the environment says it already.
#pragma once

#include "transport/bootstrap.hpp"
#include "transport/mpi/library.hpp"

namespace paceline {

// An MPICH that has both takes UCX before libfabric, over which we cannot post receives from
// anybody (transport/mpi/netmod.hpp).
void choose_netmod(const MpiLibrary& library);

// Tells UCX to share no memory. UCX expects ranks of one machine to share it; where some do not
// (Nodes::is_split) MPI_Init fails otherwise.
void share_no_memory(const MpiLibrary& library);

// Intel MPI may send between nodes through libfabric's RxM, by verbs or by TCP of Debian's
// libfabric, which asks before it sends more than one of its buffers holds, by default 16 KiB. A
// KiB more has room for our header beside that (docs/design/0012, 0022). Ranks whose buffers
// differ wait for each other for ever, in the first message: a usage error, the same on all ranks,
// says so before. Collective.
void widen_buffers(const MpiLibrary& library, Bootstrap& meeting);

}  // namespace paceline
