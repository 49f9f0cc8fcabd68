// What the program `fuzz` does on the command line, for `./dev fuzz` and the Python tests.
#pragma once

#include <string>
#include <vector>

#include "fuzz/program.hpp"

namespace paceline::fuzz {

struct Options {
  std::string what = {}, how = {};   // play loop, print mpi, ...
  std::uint64_t seed = 1;         // of the first program
  int programs = 1;
  int ranks = 0;                  // 0: as the seed says, where it may
  double seconds = 0;             // goes on for so long, whatever `programs` says
  std::vector<int> kept = {};     // calls of the program; empty: all
  std::string library = {};       // of MPI
  std::string folder = {};        // of tapes
  bool only_mpi = false;
  bool fast = false;              // numbers
  bool threads = false;           // progress by a thread of each rank
  int wrong_message = -1;         // loop: a mutant
};

int command(const std::vector<std::string>& words);   // exit status

// Over processes of this machine, which are forked here; what went wrong.
std::string play_shm(const Options& options);
int play_mpi(const Options& options);    // one rank of many

// The program of the n-th seed, thinned.
Program program_of(const Options& options, int n);

}  // namespace paceline::fuzz
