// What an MPI launcher leaves in the environment of the processes that it starts.
#pragma once

#include <string>

namespace paceline {

// The variable by which a launcher says that there are several processes, with its value:
// "PMI_SIZE=4". Empty where none says so.
std::string mpi_launcher();

// Whether a variable that is somebody else's is in the environment.
bool is_set(const char* variable);

}  // namespace paceline
