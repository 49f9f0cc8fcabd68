// Stopped: for how long each of a node's other ranks has been seen stopped by a signal (SIGSTOP,
// Ctrl-Z), or with its control group frozen.
//
// A working rank is late, however long it takes; a stopped one does nothing until it is continued.
// A rank that a debugger holds counts as working: the system tells the two apart, and its peers are
// not to give up meanwhile.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "transport/shm/frozen.hpp"

namespace paceline {

// Cause that keeps a process from running until it is continued.
enum class Halt { none, signal, freezer };

class Stopped {
 public:
  using Clock = std::chrono::steady_clock;

  // limit_ms: time to wait for a stopped rank; 0: for ever.
  Stopped(int ranks, int limit_ms) : limit_ms_(limit_ms), of_(std::size_t(ranks)) {}

  // True if it is time to look at the ranks again: a look costs some microseconds a rank.
  bool is_due(Clock::time_point now);
  // Looks at a rank. True, once per rank, if it has been seen stopped, without a break, for the
  // limit or longer.
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

// Returns what stops the process; none if a debugger holds it. The process id must not have been
// given to another process.
Halt halt_of(int process_id, const Freezers& freezers);

}  // namespace paceline
