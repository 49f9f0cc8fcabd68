// Choice: the algorithm that serves a call and its cut, and what the choice depends on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "ir/algorithm.hpp"
#include "model/machine.hpp"

namespace paceline {

// Figures of a machine that was not measured: all ranks in one node (0), or a fast network between
// nodes of so many ranks.
const Machine& usual_machine(int ranks_per_node = 0);

// Inputs of a choice besides the problem. Equal on all ranks by the standard, or agreed when
// the communicator was made.
struct ChoiceInputs {
  std::size_t bytes = 0;   // of the whole message (all units); 0 if not every rank knows them
  Machine machine = usual_machine();
  // Length of each rank's staging buffer, if all ranks (Problem::one_node) or those of a node
  // (node_staging) share memory.
  std::size_t stage_bytes = 0;
  bool is_one_of_many = false;   // Call::is_one_of_many
  bool one_starts_all = false;   // one process starts the messages and sums of all ranks
};

struct Row;   // tune/table.hpp

struct Choice {
  const Algorithm* algorithm = nullptr;
  const Row* row = nullptr;   // null for late ranks, or if an algorithm is named that has none
  Cut cut = kUncut;
  std::string why = {};
  // Seconds that the call takes on ChoiceInputs::machine from the last rank's entry on
  // (tune/estimate.hpp).
  double expected_s = 0;
};

// Hash of a choice, which ranks compare.
std::uint64_t hash_of(const Choice& choice);

// Wishes of the caller; empty and 0: chosen.
struct Overrides {
  std::string algorithm;
  Cut cut = {};   // its numbers; the rest is decided by choose()
};

std::string text_of(const Overrides& wish);   // equal for equal wishes alone

}  // namespace paceline
