// From a transport to the communicator of all of its ranks, and out of the world again.
#pragma once

#include <memory>

#include "runtime/communicator.hpp"
#include "runtime/world.hpp"
#include "transport/leaving.hpp"
#include "transport/transport.hpp"

namespace paceline {

// The communicator of all ranks of a transport: how join_world ends, and where tests with a
// transport of their own begin. `together`: every rank calls this now, so that those who share
// memory can find each other's staging buffers before it returns, and not in their first call.
Communicator join_transport(std::unique_ptr<Transport> transport, const WorldConfig& config,
                            bool together = false);

// Communicator::leave() of the world, and before it the end of its profile.
void leave_world(Communicator& world, Leaving why = Leaving::ended);

}  // namespace paceline
