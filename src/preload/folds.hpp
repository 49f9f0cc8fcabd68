// Folds: reductions by operations that Paceline lacks: a user's own, MPI_MAXLOC, products of
// complex numbers. The ranks exchange their elements, and the host's MPI_Reduce_local combines
// them, in rank order.
#pragma once

#include "host_mpi.hpp"

namespace paceline::preload {

struct Exchange;

// True if the host takes the operation for this datatype, and Paceline does not.
bool is_fold(MPI_Op op, MPI_Datatype type);

// Makes the call: one exchange of whole vectors if they are short, else one of pieces, of which
// each rank combines its own, and one of the results. Throws as Communicator::run() does, and a
// usage error if MPI refuses the operation.
void run_fold(Exchange& x);

}  // namespace paceline::preload
