// simulate: a timed trace of a world of schedules under a machine model and an arrival pattern.
//
// The rules, so that a picture can be checked by hand:
//   step      may start when its predecessors have ended and its rank has arrived.
//   message   starts when its send and its receive may start (rendezvous) and both ports are free;
//             takes alpha + bytes beta, and holds the ports all the while but for its flight. Every
//             node has one full-duplex port for all its ranks; inside a node every rank has a
//             sending and a receiving side of its own.
//   signal    takes alpha, holds no port and does not wait for the wait: a flag, not data.
//   reduce    holds its rank's one compute unit for gamma per byte and combination: k sources,
//             k - 1 of them. A copy holds it too, where copies take time; finish takes none. Steps
//             of no time do not queue. If messages go between nodes only, what is read from
//             staging buffers of the node's others takes beta per byte besides.
//   recv_reduce  arrives like a receive and combines afterwards: only what is there can be added.
//   priority  what waits for a port or a compute unit is served most urgent call first (of equals
//             the one that is listed first), then oldest pipeline segment first, then in the order
//             of the steps (a message: the sender's, then the receiver's), then by rank. Nothing
//             free stays idle for something more urgent to come, and nothing is interrupted.
// The same input always gives the same trace.
#pragma once

#include <cstddef>
#include <vector>

#include "ir/schedule.hpp"
#include "model/machine.hpp"
#include "trace/trace.hpp"

namespace paceline {

// `world`: one schedule per rank. Ranks are on the nodes that the schedules know (Problem::nodes);
// else consecutive ranks share a node, as the machine says. `count`: elements per unit (the whole
// vector, or a rank's piece). `arrivals`: seconds by rank; empty: all at 0.
//
// One event per step in the order of completion; a recv_reduce gives two, the receive and the
// combination; a finish is a reduce of no bytes. Events of messages begin when the data starts to
// flow, which a measurement cannot know; a wait begins when the rank starts to wait. Throws a usage
// error if the arguments do not fit together, an internal one if the schedules do not (verify says
// more).
Trace simulate(const std::vector<Schedule>& world, std::size_t count, std::size_t element_bytes,
               const Machine& machine, const std::vector<double>& arrivals = {});

// A call, and when each rank makes it.
struct SimulatedCall {
  const std::vector<Schedule>* world = nullptr;   // which outlives the simulation
  std::size_t count = 0;
  std::size_t element_bytes = 0;
  int priority = 0;              // higher is more urgent
  std::vector<double> arrivals = {};
};

// Calls of the same ranks that are under way at a time and compete for ports and compute units: a
// trace of each. They are listed in the order in which every rank makes them.
std::vector<Trace> simulate(const std::vector<SimulatedCall>& calls, const Machine& machine);

}  // namespace paceline
