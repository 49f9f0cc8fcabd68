// Carries out a program on one rank over Communicator, and judges what comes out.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "base/error.hpp"
#include "fuzz/program.hpp"
#include "runtime/communicator.hpp"

namespace paceline::fuzz {

struct Seat {
  Communicator world;
  std::function<void(int us)> pause;   // lets time pass, and other ranks go on
  bool near = true;                    // ranks see each other's stages
  std::function<void()> idle = {};     // between looks at what is under way
  bool compares = true;                // at the end, results with those of other ranks
  std::atomic<int>* entered = nullptr; // of each call: the ranks that have, where all can see it
};

// What became of a rank.
struct Ending {
  std::string flaw;    // of the first wrong result
  std::string error;   // that was thrown; empty: the program went to its end
  Fault fault = Fault::internal;
  int calls = 0;       // completed
};

Ending play(const Program& program, Seat& seat);

}  // namespace paceline::fuzz
