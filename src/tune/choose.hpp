// choose: which algorithm serves a call, in how many pieces, and why.
//
// A pure function of what is equal on all ranks, so that all ranks choose alike: the problem, the
// bytes, and numbers for the machine. Where ranks share memory, tables of measured lengths decide.
// Otherwise it asks the cost of every candidate, says how long that takes when the message is cut
// into its best number of pieces, and takes the shortest. The table is in table.cpp; `paceline
// explain` prints what comes of it.
#pragma once

#include <cstdint>
#include <string>

#include "ir/algorithm.hpp"
#include "model/machine.hpp"

namespace paceline {

// The numbers that stand for a machine that nobody has measured: all ranks in one node (0), or so
// many in each, and a fast network between the nodes.
const Machine& usual_machine(int ranks_per_node = 0);

// What a choice looks at besides the problem. Equal on all ranks by the standard, or agreed when
// the communicator was made.
struct ChoiceInputs {
  std::size_t bytes = 0;   // of the whole message (all units); 0 where not every rank knows them
  Machine machine = usual_machine();
  // Of each rank, where ranks share memory: all (Problem::one_node), or those of a node
  // (node_staging).
  std::size_t stage_bytes = 0;   // of its staging buffer
};

struct Row;   // tune/table.hpp

struct Choice {
  const Algorithm* algorithm = nullptr;
  const Row* row = nullptr;   // that it follows; none for late ranks, or where one is named without
  Cut cut = kUncut;
  std::string why = {};
  // Of the call on ChoiceInputs::machine, from the last rank's entry on (tune/estimate.hpp).
  double expected_s = 0;
};

// A number that differs where choices do, to compare them between ranks.
std::uint64_t hash_of(const Choice& choice);

// What the caller asks for; empty and 0: chosen.
struct Overrides {
  std::string algorithm;
  Cut cut = {};   // its numbers; the rest is decided by choose()
};

// Throws a usage error for a knob that the algorithm does not have or that is out of range.
void check_knobs(const Algorithm& algorithm, const Knobs& knobs);

// Throws a usage error or a refusal for a wish that cannot be met.
Choice choose(const Problem& problem, const ChoiceInputs& now, const Overrides& wish = {});

}  // namespace paceline
