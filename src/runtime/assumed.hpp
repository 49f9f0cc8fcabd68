// Assumed: the machine that choices between nodes assume, and the source of its numbers.
//
// It is equal on all ranks: with the option `machine` `auto` or `probe`, all ranks take the figures
// that they have agreed on (machine/machine_choice.hpp, machine/probe.hpp).
#pragma once

#include <string>
#include <string_view>

#include "model/machine.hpp"

namespace paceline {

struct Assumed {
  Machine machine;
  std::string why;
};

// Returns the machine of the option alone; `auto` and `probe` begin with the usual machine. Throws
// a usage error that names PACELINE_MACHINE.
Assumed assumed_by(std::string_view option);

// Returns text such as "edr-100g: alpha 1.5 us, 100 Gbit/s, reduce 10 GB/s (usual)".
std::string describe(const Assumed& assumed);

}  // namespace paceline
