// Start MPI: starts an MPI for ranks of several nodes that no MPI launcher has started.
#pragma once

#include <memory>

#include "runtime/world.hpp"
#include "transport/mpi/library.hpp"
#include "transport/shm/nodes.hpp"

namespace paceline {

// Text of a StartDeadline for ranks of which one has died before their first call.
inline constexpr const char* kNotMet = "the ranks have not met over MPI";

struct MpiJob {
  std::shared_ptr<MpiLibrary> library;
  std::shared_ptr<MpiWorld> world;
};

// Returns the MPI of all ranks of the meeting. Collective. The first call loads and initialises an
// MPI of MPICH's family, with the store as its process manager; later worlds of the same ranks use
// it again. Throws on every rank if one has no such library.
MpiJob start_mpi(Bootstrap& meeting, std::shared_ptr<Store> store, const Nodes& nodes,
                 const WorldConfig& config);

// Initialises the library unless it is initialised already; returns its level of thread support.
MpiThreads init_mpi(MpiLibrary& library);

// Finalises the MPI that join_world has started, if any. Called last before the process ends, after
// leaving all worlds. Collective over the processes of the first world that needed it; must not be
// called if one may be missing, since MPI would wait for it.
void finish_mpi();

}  // namespace paceline
