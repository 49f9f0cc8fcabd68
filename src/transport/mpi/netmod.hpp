// The network layers that an MPICH was built with: its "netmods".
#pragma once

#include <string>
#include <vector>

namespace paceline::mpi {

inline constexpr const char* kNetmod = "MPIR_CVAR_CH4_NETMOD";   // chooses one of several

// Netmods named in `about`, the library's words about itself; its own choice comes first. Empty:
// another MPI, or an MPICH of before these layers.
std::vector<std::string> netmods_of(const std::string& about);

// True if messages between nodes go by UCX. Then MPICH 5.0.1 and 5.0.2 may never complete a receive
// from MPI_ANY_SOURCE that is posted before its message arrives from another node (tcp, 32 of them
// posted: 6 of 8 starts hang; 0 of 8 with matched probes, 0 of 8 with the sender named).
bool is_over_ucx(const std::string& about);

}  // namespace paceline::mpi
