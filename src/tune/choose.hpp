// choose: which algorithm serves a call, in how many segments, and why.
//
// A pure function of what is equal on all ranks, so that all ranks choose alike.
#pragma once

#include <string>

#include "ir/algorithm.hpp"

namespace paceline {

struct Choice {
  const Algorithm* algorithm = nullptr;
  Knobs knobs;
  int segments = 1;
  int window = 1;
  std::string why;
};

// What the caller asks for; empty and 0: chosen.
struct Wish {
  std::string algorithm;
  int segments = 0;
  int window = 0;
};

// `bytes`: of the whole message (all units). Throws a usage error or a refusal for a wish that
// cannot be met.
Choice choose(const Problem& problem, std::size_t bytes, const Wish& wish);

}  // namespace paceline
