// The mpi transport over a port: what makes messages of an MPI into transfers.
//
// Every message begins with a control message. A short one is in it (eager), unless its peer has
// too much of that kind unread; a longer one follows at once in chunks (a stream). MPI moves a
// chunk once its receive is there, so what comes before anybody wants it is bounded on both sides.
#pragma once

#include <memory>

#include "transport/bootstrap.hpp"
#include "transport/mpi/config.hpp"
#include "transport/mpi/port.hpp"
#include "transport/transport.hpp"

namespace paceline::mpi {

// Throws on every rank where they do not have the same configuration. Collective.
void agree(Bootstrap& meeting, const MpiConfig& config);

std::unique_ptr<Transport> make_transport(std::unique_ptr<MpiPort> port, const MpiConfig& config);

}  // namespace paceline::mpi
