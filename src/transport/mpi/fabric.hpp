// Intel MPI's own libfabric. In MPI_Init it asks the loader for libfabric.so.1 by name alone, and
// so takes the system's, if there is one, unless setvars.sh has put its own into LD_LIBRARY_PATH.
// mpi4py loads the one that came with the library first; so do we, and ranks that start MPI by
// either speak alike (docs/design/0012).
#pragma once

#include <string>

namespace paceline::mpi {

// The libfabric.so.1 that came with the MPI whose library is this file; empty: none did.
std::string fabric_of(const std::string& library);

// Folder of that libfabric's providers: its own folder, or "prov" in it.
std::string providers_of(const std::string& fabric);

// Loads the libfabric of this library, unless the process has one already or the environment asks
// for another (I_MPI_OFI_LIBRARY_INTERNAL=0), and sets FI_PROVIDER_PATH unless it is set. Does so
// with I_MPI_FABRICS=shm, too, which does not hold between nodes. Leaves one that cannot be loaded
// to MPI.
void load_fabric_of(const std::string& library);

}  // namespace paceline::mpi
