// Cut: the number of pieces into which a call is cut, and how they follow each other.
#pragma once

#include <cstddef>

namespace paceline {

// Parameters that an algorithm leaves open; 0: its own choice.
struct Knobs {
  int radix = 0;    // of its tree or hypercube: radix - 1 messages at a time
  int blocks = 0;   // that it cuts the message into
  bool operator==(const Knobs&) const = default;
};

// Together with the algorithm and the problem this is all that decides what a rank does: see
// lower(). In a call and a wish 0 leaves a number to choose(); lower() then takes 1.
struct Cut {
  int segments = 0;          // of a pipeline: ir/pipeline.hpp
  int window = 0;            // segments under way at a time
  Knobs knobs = {};
  bool in_step = false;      // messages wait for their rounds: ir/in_step.hpp. Never asked for.
  bool whole_tail = false;   // segments end where the algorithm's tail begins. Never asked for.
  std::size_t segment_bytes = 0;   // most of one, asked for instead of their number
  bool operator==(const Cut&) const = default;
};

inline constexpr Cut kUncut{.segments = 1, .window = 1};

}  // namespace paceline
