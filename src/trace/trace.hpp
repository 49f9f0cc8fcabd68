// Trace: the activities of ranks in time, simulated or measured. Pictures and reports come from it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace paceline {

// send, recv: from the posting to the completion. compute: work of ranks between collectives.
enum class Activity : std::uint8_t { send, recv, reduce, copy, signal, wait, compute };

struct Event {
  int rank = 0;
  Activity activity = Activity::copy;
  int peer = -1;              // send, recv, signal, wait
  int step = -1;              // in the rank's schedule
  int steps = 1;              // from there on, done together: a sum and copies of it
  int segment = 0;            // pipeline segment
  double begin_s = 0;
  double end_s = 0;
  std::uint64_t bytes = 0;    // of the message, or of the first step's target
};

struct Trace {
  std::string title;          // "allreduce/ring, 4 ranks, 1 MiB, 4 segments"
  std::string provenance;     // "simulated: alpha 5 us, ..." or "measured: <machine>, <date>"
  int ranks = 0;
  std::vector<double> arrival_s;   // when each rank entered
  std::vector<double> exit_s;      // when each rank left
  std::vector<Event> events;

  double span_s() const;      // last exit minus first arrival
};

}  // namespace paceline
