// Timing: when the work that was enqueued on emulated devices would have run, in model time.
//
// The rules, so that a picture can be checked by hand:
//   copy      waits for what its stream and its events put before it; takes latency + bytes / rate,
//             and holds the sender's outward and the receiver's inward engine all the while.
//   combine   likewise holds its device's compute unit, for bytes / rate of what it combines; what
//             it reads from other devices also comes in by its inward and their outward engines,
//             and what it writes there goes out by its outward and their inward ones, at once.
//   engines   serve what may start, in the order in which it was enqueued. None stays idle for
//             something earlier to come.
// Nothing here measures time: the same work always takes the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace paceline::device {

struct Rates {
  double latency_s = 0;              // of each copy
  double copy_bytes_per_s = 1;       // of each engine
  double combine_bytes_per_s = 0;    // of the sources but the first; 0: takes no time
};

// A piece of work as it was enqueued.
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

// When each piece runs. `after` names earlier numbers only.
std::vector<Span> timing(const std::vector<Work>& work, const Rates& rates);

// From the first begin to the last end.
double makespan_s(const std::vector<Span>& spans);

}  // namespace paceline::device
