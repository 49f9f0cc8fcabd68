// Join: makes a world of ranks that meet in a store, or that an MPI has started.
#pragma once

#include <memory>
#include <string>

#include "runtime/communicator.hpp"
#include "runtime/world.hpp"
#include "transport/mpi/library.hpp"
#include "transport/store.hpp"

namespace paceline {

// Joins the world of the ranks that meet in a store; returns when every rank has joined. The
// communicator of all ranks keeps the world alive. Ranks of one node communicate through shared
// memory, those of several through an MPI that is started here and keeps the store until
// finish_mpi().
Communicator join_world(std::shared_ptr<Store> store, WorldConfig config);
// Like join_world(), for processes that may try again. `place` and the name in `config` identify
// the world. Each try has its own meeting, and ranks skip a meeting that one of them has given up:
// they meet in the first try that all of them reach within the time-out.
Communicator join_again(std::shared_ptr<Store> store, WorldConfig config, const std::string& place);

// Joins all ranks of an MPI communicator, as MpiLibrary::open takes it; collective over it. The
// library is initialised. Ranks of a node communicate through shared memory, others through MPI.
// `config` need not set rank and ranks.
Communicator join_mpi(MpiLibrary& library, const void* communicator, WorldConfig config);

}  // namespace paceline
