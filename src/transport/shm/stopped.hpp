// Stopped: for how long each of a node's other ranks has been seen stopped by a signal (SIGSTOP,
// Ctrl-Z), or with its control group frozen.
//
// A rank that works is late, however long it takes; one that is stopped does nothing until somebody
// continues it. One that a debugger holds counts as working: the system tells the two apart, and
// who looks at a rank there does not want its peers to give up meanwhile.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "transport/shm/frozen.hpp"

namespace paceline {

// What keeps a process from running until somebody lets it go on.
enum class Halt { none, signal, freezer };

class Stopped {
 public:
  using Clock = std::chrono::steady_clock;

  // limit_ms: how long a stopped rank is waited for; 0: for ever.
  Stopped(int ranks, int limit_ms) : limit_ms_(limit_ms), of_(std::size_t(ranks)) {}

  // Whether it is time to look at the ranks again: a look costs some microseconds a rank.
  bool is_due(Clock::time_point now);
  // Looks. Whether this rank has now been seen stopped, without a break, for longer than the limit;
  // once for each rank.
  bool outlasts(int rank, int process_id);
  std::string why(int rank, int process_id) const;   // as a part of a sentence

 private:
  struct Seen {
    Halt halt = Halt::none;
    bool is_told = false;
    Clock::duration so_far{};
  };

  int limit_ms_;
  Clock::time_point looked_{};
  Clock::duration since_{};   // between the last two looks, as far as it counts
  std::vector<Seen> of_;
  Freezers freezers_;
};

// What stops the process, unless a debugger holds it. The process id must not have been given to
// another process.
Halt halt_of(int process_id, const Freezers& freezers);

}  // namespace paceline
