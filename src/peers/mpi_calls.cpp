#include "peers/mpi_calls.hpp"

#include "base/error.hpp"
#include "peers/run_on.hpp"

namespace paceline {

MpiForm mpi_form_from(std::string_view name) {
  if (name == "blocking") return MpiForm::blocking;
  if (name == "concurrent") return MpiForm::concurrent;
  if (name == "sendrecv_ring") return MpiForm::sendrecv_ring;
  fail(Fault::usage, "mpi: '", name, "' is no form of a call; use blocking, concurrent or ",
       "sendrecv_ring.");
}

void call_mpi(MpiWorld& world, const MpiCall& call) {
  if (!peers::run_mpich(world, call) && !peers::run_openmpi(world, call) &&
      !peers::run_standard(world, call))
    fail(Fault::refusal, "mpi: this MPI's own collectives cannot be called from here.");
}

}  // namespace paceline
