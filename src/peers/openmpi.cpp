#include "transport/mpi/abi/openmpi.hpp"

#include "peers/blocking_of.hpp"
#include "peers/run_on.hpp"

namespace paceline::peers {

bool run_openmpi(MpiWorld& world, const MpiCall& call) { return run_on<mpi::OpenMpi>(world, call); }

}  // namespace paceline::peers
