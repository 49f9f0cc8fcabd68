// Joining a world: its ranks meet in a store, or an MPI has brought them together.
#pragma once

#include <memory>
#include <string>

#include "runtime/communicator.hpp"
#include "runtime/world.hpp"
#include "transport/mpi/library.hpp"
#include "transport/store.hpp"

namespace paceline {

// Joins the world of the ranks that meet in a store: returns when every rank has joined. The
// communicator of all ranks keeps the world alive. Ranks of one node talk through shared memory;
// those of several through an MPI that is started here, which keeps the store until finish_mpi().
Communicator join_world(std::shared_ptr<Store> store, WorldConfig config);
// The same for processes that may try again: each try at a world, which `place` and the name in
// `config` tell from others, has a meeting of its own, and ranks pass over a meeting that one of
// them has given up. So they meet in the first try that all of them come to within the time-out.
Communicator join_again(std::shared_ptr<Store> store, WorldConfig config, const std::string& place);

// All ranks of an MPI communicator, as MpiLibrary::open takes it. The library is initialised.
// Collective over it. Neighbours talk through shared memory, others through MPI. `config` need not
// say rank and ranks.
Communicator join_mpi(MpiLibrary& library, const void* communicator, WorldConfig config);

}  // namespace paceline
