// Environment variables that an MPI launcher sets for the processes that it starts.
#pragma once

#include <optional>
#include <string>

namespace paceline {

// Returns the variable by which a launcher tells that there are several processes, with its value:
// "PMI_SIZE=4"; empty if there is none.
std::string mpi_launcher();

// Returns the value of an environment variable that is no option of Paceline.
std::optional<std::string> value_of(const char* variable);

}  // namespace paceline
