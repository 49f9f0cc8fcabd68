#include "transport/mpi/abi/mpich.hpp"

#include "peers/blocking_of.hpp"
#include "peers/run_on.hpp"

namespace paceline::peers {

bool run_mpich(MpiWorld& world, const MpiCall& call) { return run_on<mpi::Mpich>(world, call); }

}  // namespace paceline::peers
