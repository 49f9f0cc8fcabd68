// The mpi transport over a port: makes transfers out of an MPI's messages.
//
// Every message begins with a control message. A short one is in it (eager), unless its peer has
// too much of that kind unread; a longer one follows at once in chunks (a stream). MPI moves a
// chunk once its receive is posted, so memory for early messages is bounded on both sides.
#pragma once

#include <memory>

#include "transport/bootstrap.hpp"
#include "transport/mpi/config.hpp"
#include "transport/mpi/port.hpp"
#include "transport/transport.hpp"

namespace paceline::mpi {

// Throws on every rank if their configurations differ. Collective.
void agree(Bootstrap& meeting, const MpiConfig& config);

std::unique_ptr<Transport> make_transport(std::unique_ptr<MpiPort> port, const MpiConfig& config);

}  // namespace paceline::mpi
