// Timing: model time of the work that was enqueued on emulated devices.
//
// The rules, so that a picture can be checked by hand:
//   copy      waits for earlier work of its stream and its events; takes latency + bytes / rate,
//             and holds the sender's outward and the receiver's inward engine all that time.
//   combine   waits in the same way; holds its device's compute unit for bytes / rate of the
//             combined bytes. Bytes read from other devices also take its inward and their outward
//             engines; bytes written there take its outward and their inward ones, all at once.
//   engines   serve the work that may start in the order in which it was enqueued. None stays idle
//             to wait for earlier work.
//   host      one process enqueues everything, a piece each host_s; none begins before that.
// Nothing here measures time: the same work always takes the same time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace paceline::device {

struct Rates {
  double latency_s = 0;              // of each copy
  double copy_bytes_per_s = 1;       // of each engine
  double combine_bytes_per_s = 0;    // of the sources but the first; 0: takes no time
  double host_s = 0;                 // between two pieces of work; 0: a graph, started as one
};

// An enqueued piece of work.
struct Work {
  bool combines = false;
  int device = 0;                    // of a copy: whose memory it writes
  std::vector<int> from = {};        // other devices whose memory it reads; a copy: one, or itself
  std::vector<int> to = {};          // of a combination: other devices whose memory it writes
  double bytes = 0;                  // copied, or that come from and go to each of the others
  double combined = 0;               // bytes of all sources but the first
  std::vector<std::uint32_t> after = {};   // earlier work, by number
};

struct Span {
  double begin_s = 0, end_s = 0;
};

// Returns the time of each piece. `after` must name only earlier numbers.
std::vector<Span> timing(const std::vector<Work>& work, const Rates& rates);

// Returns the time from the first begin to the last end.
double makespan_s(const std::vector<Span>& spans);

}  // namespace paceline::device
