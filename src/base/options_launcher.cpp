#include "base/options_launcher.hpp"

#include <cstdlib>

#include "base/str.hpp"

namespace paceline {

std::string mpi_launcher() {
  // Variables of Open MPI, of MPICH and its relatives, and of srun. SLURM_NTASKS is also set in a
  // batch script, which is one process.
  constexpr const char* kSizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"};
  for (const char* name : kSizes)
    if (const char* size = std::getenv(name); size && std::atoi(size) > 1)
      return str(name, "=", size);
  return {};
}

std::optional<std::string> value_of(const char* variable) {
  const char* const value = std::getenv(variable);
  return value ? std::optional<std::string>(value) : std::nullopt;
}

}  // namespace paceline
