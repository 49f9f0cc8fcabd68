// What this rank's processors, network and MPI are, as far as measured figures depend on them.
#pragma once

#include <string>

namespace paceline {

// One line for processors, network adapters and the variables by which MPIs choose among them.
// `system`: the folder of the kernel's descriptions. Two nodes of one kind have the same line.
std::string describe_hardware(const std::string& system = "/sys",
                              const std::string& processors = "/proc/cpuinfo");

}  // namespace paceline
