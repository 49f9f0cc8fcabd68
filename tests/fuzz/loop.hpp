// Ranks in one thread over the loop transport, through a transport that does what networks and
// machines do to programs: messages take long and overtake each other, ranks stand still or vanish.
// All of it comes from a seed.
#pragma once

#include <vector>

#include "fuzz/play.hpp"

namespace paceline::fuzz {

struct Faults {
  std::uint64_t seed = 1;
  double delay_s = 0;          // messages take up to so long; each its own time
  int late_percent = 0;        // of messages that take a hundred times as long
  bool stages = true;          // ranks see each other's memory; else all is sent
  double timeout_s = 20;       // of a call
  int held = -1;               // a rank that stands still
  double held_from_s = 0;      // after the beginning
  double held_for_s = 0;       // for ever: infinity
  bool killed = false;         // the others are told that it is no more
  int wrong_message = -1;      // the message of the world in which a bit is turned
};

// What chance makes of a seed, such that every program must still end rightly.
Faults weather(std::uint64_t seed);

struct LoopEnding {
  std::vector<Ending> ranks;
  bool ends = true;            // all ranks have come to an end
  bool hit = false;            // the wrong message has been sent
  double seconds = 0;          // of the ranks' own time
  std::vector<double> waited_s;   // per rank: until its end, without its leaving

  std::string trouble() const; // empty: every rank has the right results
};

LoopEnding play_loop(const Program& program, const Faults& faults);

// The program and the weather of a seed, on one to eight ranks; or on so many.
Program loop_program(std::uint64_t seed, int ranks = 0);

}  // namespace paceline::fuzz
