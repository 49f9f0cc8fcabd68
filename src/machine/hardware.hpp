// Description of this rank's processors, network and MPI, on which measured figures depend.
#pragma once

#include <string>

namespace paceline {

// Returns one line for processors, network adapters and the variables by which MPIs choose among
// them. `system`: the kernel's folder of devices. Two nodes of one kind have the same line.
std::string describe_hardware(const std::string& system = "/sys",
                              const std::string& processors = "/proc/cpuinfo");

}  // namespace paceline
