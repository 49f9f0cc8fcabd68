#include "transport/mpi/abi/standard.hpp"

#include "peers/blocking_of.hpp"
#include "peers/run_on.hpp"

namespace paceline::peers {

bool run_standard(MpiWorld& world, const MpiCall& call) {
  return run_on<mpi::Standard>(world, call);
}

}  // namespace paceline::peers
