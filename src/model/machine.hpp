// Machine: costs of a message and of a combination, for the simulator, the tuner and the bounds.
//
// The usual model: a message of n bytes takes alpha + n beta, combining n bytes takes n gamma.
// Messages inside a node and across nodes have an alpha and beta of their own. A message occupies a
// port at either end for that time except its flight, the part of alpha that passes on the way; the
// next message may follow meanwhile. On some networks long messages, which an MPI first announces,
// are slower than trains of shorter ones.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/problem.hpp"

namespace paceline {

struct Link {
  double alpha_s = 0;            // per message
  double beta_s_per_byte = 0;
  double latency_s = 0;           // at most alpha
  double short_bytes = 0;        // the numbers hold for messages of at least this length
  double long_beta_s_per_byte = 0;   // of long ones; 0: the same
  double long_bytes = 0;         // those that are longer; 0: longer than short_bytes
  double lone_beta_s_per_byte = 0;   // of calls of at most 2 short_bytes; 0: the same
  // In short calls: a message's alpha in a round in which every rank sends (0: the same), and the
  // part of it caused by that.
  double alpha_loaded_s = 0;
  double contention = 0;

  double long_from() const { return long_bytes > 0 ? long_bytes : short_bytes; }
  bool is_long(double bytes) const { return long_beta_s_per_byte > 0 && bytes > long_from(); }
  double rate(double bytes) const {
    return is_long(bytes) ? long_beta_s_per_byte : beta_s_per_byte;
  }
  double time_s(double bytes) const { return alpha_s + bytes * rate(bytes); }
};

struct Machine {
  std::string name;
  int ranks_per_node = 1;        // consecutive ranks share a node
  Link inside, across;
  double gamma_s_per_byte = 0;   // per byte of one combination of two operands
  double copy_s_per_byte = 0;
  double task_s = 10e-6;         // time to wake a thread and get its answer, as a call by the task
                                 // graph does; the default is a usual value, not a measurement

  int node_of(int rank) const { return rank / ranks_per_node; }
  const Link& link(int from, int to) const {
    return node_of(from) == node_of(to) ? inside : across;
  }
};

const std::vector<Machine>& known_machines();

// A known name, settings, or a name followed by settings: "edr-100g", "edr-100g,ranks_per_node=4",
// "alpha_us=5,gbit_per_s=10,reduce_gbyte_per_s=4". Throws a usage error that lists the names.
//   alpha_us, latency_us, gbit_per_s       messages across nodes
//   short_kib                             no piece is shorter
//   lone_gbit_per_s                       in calls of at most twice that
//   long_kib, long_gbit_per_s             of longer messages than that
//   alpha_loaded_us, contention_percent    alpha while every rank sends; the part caused by that
//   inside_alpha_us, inside_gbit_per_s    messages inside a node
//   reduce_gbyte_per_s, copy_gbyte_per_s  0: takes no time
//   task_us                               additional cost of a call made by the task graph
//   ranks_per_node
// Or three numbers, in seconds and seconds per byte, for messages across nodes and for sums: alpha,
// beta, gamma, as in "3e-5,4e-8,1e-10".
Machine machine_from(std::string_view text);

// "edr-100g: alpha 1.5 us, 100 Gbit/s, reduce 10 GB/s": its numbers as a person reads them.
std::string describe(const Machine& machine);

// The same for machine_from(): "alpha_us=1.5,gbit_per_s=100,...", to the last digit or nearly so.
std::string settings_of(const Machine& machine);

// The time below which no schedule can do the collective: bandwidth alone, every node sending and
// receiving at once. `bytes` is the full vector: over all ranks for collectives with a unit per
// rank, what one rank sends for alltoall.
double bound_s(const Machine& machine, Collective collective, int ranks, double bytes);

}  // namespace paceline
