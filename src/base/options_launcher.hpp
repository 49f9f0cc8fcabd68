// What an MPI launcher leaves in the environment of the processes that it starts.
#pragma once

#include <optional>
#include <string>

namespace paceline {

// The variable by which a launcher says that there are several processes, with its value:
// "PMI_SIZE=4". Empty where none says so.
std::string mpi_launcher();

// What a variable that is somebody else's has in the environment.
std::optional<std::string> value_of(const char* variable);

}  // namespace paceline
