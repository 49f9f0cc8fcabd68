// lower: the one way from an algorithm to the schedule that a rank runs.
//
// build -> fuse -> in_step -> pipeline -> in_order, under conditions that stand here alone. The
// communicator, devices, verify, the simulator and the tests all come through here, so what is
// proven, drawn and priced is what runs.
#pragma once

#include "ir/algorithm.hpp"
#include "ir/cut.hpp"

namespace paceline {

// The reader of a schedule. host: runs it as it is. proof: steps are not fused yet; verify runs
// before and after that pass. device: nothing is fused, and the streams of several segments go on
// beside each other even if ranks reach each other's memory.
enum class Reader { host, proof, device };

// Throws a refusal if the algorithm rejects the problem, a usage error for a negative number.
Schedule lower(const Algorithm& algorithm, const Problem& problem, const Cut& cut,
               Reader reader = Reader::host);

// The same of a schedule that is built already, with the cut's knobs.
Schedule lower(const Algorithm& algorithm, Schedule built, const Cut& cut,
               Reader reader = Reader::host);

}  // namespace paceline
