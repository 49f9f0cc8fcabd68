// The summary at MPI_Finalize: what Paceline has run, by which algorithms and for how long, what
// the host has run and why, and what would change that. Calls are counted and timed only where the
// option asks for it.
#pragma once

#include <cstddef>
#include <string>

#include "comm_state.hpp"

namespace paceline::preload {

// True if the option asks for a summary; set by begin_summary().
inline bool is_summarised = false;

// Called once, before any call is served. `counters`: the stub's, of the calls that are always the
// host's.
void begin_summary(const unsigned long* counters);

// Returns seconds of a monotonic clock.
double summary_clock();

// Counts a call that has ended and that began at this time of the clock.
void count_served(Row row, const std::string& algorithm, std::size_t bytes, double began);

// Counts a call that passes to the host.
void count_passed(Row row, FallbackReason why);

// Adds the host's time to the latest call that this thread has counted as passed.
void add_host_time(Row row, double seconds);

// Makes a call by the host, and times it.
template <class Host>
int by_host(Row row, Host&& host) {
  if (!is_summarised) return host();
  const double began = summary_clock();
  const int status = host();
  add_host_time(row, summary_clock() - began);
  return status;
}

// Prints on rank 0 of MPI_COMM_WORLD, to stderr.
void print_summary();

}  // namespace paceline::preload
