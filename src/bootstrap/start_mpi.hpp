// Starting an MPI for ranks of several nodes that no MPI launcher has started.
#pragma once

#include <memory>

#include "runtime/world.hpp"
#include "transport/mpi/library.hpp"
#include "transport/shm/nodes.hpp"

namespace paceline {

// What a StartDeadline says of ranks of which one has died on the way to their first call.
inline constexpr const char* kNotMet = "the ranks have not met over MPI";

struct MpiJob {
  std::shared_ptr<MpiLibrary> library;
  std::shared_ptr<MpiWorld> world;
};

// All ranks of the meeting, as MPI processes. Collective. The first time it loads and initialises
// an MPI of MPICH's family, served out of the store; later worlds of the same ranks find it there.
// Throws on every rank where one has no such library.
MpiJob start_mpi(Bootstrap& meeting, std::shared_ptr<Store> store, const Nodes& nodes,
                 const WorldConfig& config);

// Initialises the library unless it is initialised already; returns the threads that it allows.
MpiThreads init_mpi(MpiLibrary& library);

// Finalises the MPI that join_world has started, if it has. The last thing before the process ends,
// after leaving all worlds; collective over the processes of the first world that needed it. Not to
// be called where one of them may be missing: MPI would wait for it.
void finish_mpi();

}  // namespace paceline
