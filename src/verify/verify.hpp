// verify: the proof that a world of schedules does what its collective promises.
//
//   form       steps are well-formed, all ranks have the same problem, local operands equal length
//   match      every send meets its receive: same pair, lane, number, and length for every count
//   staging    ranks touch and count only what they may of staging buffers inside nodes
//   hazards    any two steps that conflict over memory are ordered by the schedule's own edges
//   progress   the world ends although a send waits for its receive, whatever the timing
//   contract   every block ends up with every contribution exactly once; what is read-only stays
//
// If all conflicting steps are ordered, every interleaving has the same result (they differ only in
// the order of independent steps), so the run that checks the contract stands for all of them. That
// argument is itself tested: explore() tries every interleaving of small worlds, shake() seeded
// ones of any world.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/algorithm.hpp"

namespace paceline {

using World = std::vector<Schedule>;   // one schedule per rank

struct Verdict {
  std::string fault;                   // empty: proven
  explicit operator bool() const { return fault.empty(); }
};

Verdict verify(const World& world);

// Runs the world symbolically with a seeded order of steps, early (buffered) and late sends mixed.
Verdict shake(const World& world, std::uint64_t seed);

// Tries every interleaving, as long as there are fewer than `states` different states; `complete`:
// there were.
struct Exploration {
  Verdict verdict;
  std::size_t states = 0;
  bool complete = false;
};
Exploration explore(const World& world, std::size_t states);

// A world of an algorithm's schedules: every rank lowers its own.
struct Shape {
  Collective collective = Collective::allreduce;
  int ranks = 1;
  int root = 0;
  bool in_place = false;
  bool fused = false;
  bool ordered = false;   // the operation is not commutative: operands stay in rank order
  bool canonical = false;   // sums in rank order, each by one step (Problem::canonical)
  bool uneven = false;    // units differ in length
  // Ranks of each node, of an algorithm that sends messages; 0: no rank is near another.
  int group = 0;
  bool scattered = false;  // these take turns in rank order; else their ranks are neighbours
  std::vector<int> nodes = {};   // of each rank (Problem::nodes), in place of equally large ones
  bool no_staging = false;       // of one that goes by nodes: messages inside them
  Cut cut = kUncut;
  // Rank at each position, if positions are claimed; empty: every rank has its own number.
  std::vector<int> order = {};
  std::vector<int> late = {};   // predicted to enter last (Problem::late)
};

// One line, as the arguments of the command that repeats it.
std::string describe(const Algorithm& algorithm, const Shape& shape);
Problem problem_of(const Algorithm& algorithm, const Shape& shape, int rank);
World make_world(const Algorithm& algorithm, const Shape& shape);

}  // namespace paceline
