// Assumed: the machine that choices between nodes reckon with, and where its numbers come from.
//
// Equal on all ranks: where the option `machine` is `auto` or `probe`, all ranks take the figures
// that were agreed on (machine/machine_choice.hpp, machine/probe.hpp).
#pragma once

#include <string>
#include <string_view>

#include "model/machine.hpp"

namespace paceline {

struct Assumed {
  Machine machine;
  std::string why;
};

// What the option says by itself; `auto` and `probe` begin with the usual machine. Throws a usage
// error that names PACELINE_MACHINE.
Assumed assumed_by(std::string_view option);

// "edr-100g: alpha 1.5 us, 100 Gbit/s, reduce 10 GB/s (usual)"
std::string describe(const Assumed& assumed);

}  // namespace paceline
