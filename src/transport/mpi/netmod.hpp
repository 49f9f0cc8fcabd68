// The network layers that an MPICH was built with: its "netmods".
#pragma once

#include <string>
#include <vector>

namespace paceline::mpi {

inline constexpr const char* kNetmod = "MPIR_CVAR_CH4_NETMOD";   // chooses one of several

// By what the library says about itself; the first one is its own choice. Empty: another MPI, or
// an MPICH of before these layers.
std::vector<std::string> netmods_of(const std::string& about);

// Whether messages between nodes go by UCX. In MPICH 5.0.1 and 5.0.2 a receive from anybody that is
// posted before its message comes from another node may then never end (by TCP, 32 of them posted:
// 6 of 8 starts; none with matched probes, or with the sender named).
bool is_over_ucx(const std::string& about);

}  // namespace paceline::mpi
