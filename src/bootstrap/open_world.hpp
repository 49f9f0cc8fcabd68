// Open world: makes the communicator of all ranks of a transport, and leaves the world.
#pragma once

#include <memory>

#include "runtime/communicator.hpp"
#include "runtime/world.hpp"
#include "transport/leaving.hpp"
#include "transport/transport.hpp"

namespace paceline {

// Returns the communicator of all ranks of a transport. join_world ends with this; tests with a
// transport of their own begin with it. `together`: all ranks call this at the same time, so that
// ranks which share memory find each other's staging buffers here instead of in their first call.
Communicator join_transport(std::unique_ptr<Transport> transport, const WorldConfig& config,
                            bool together = false);

// Ends the world's profile, then calls Communicator::leave().
void leave_world(Communicator& world, Leaving why = Leaving::ended);

}  // namespace paceline
