// Conditions of the engine on graphs with steps of staging buffers and messages.
#pragma once

#include "verify/match.hpp"

namespace paceline {

// In a world whose ranks reach each other's staging buffers inside nodes (Schedule::staging):
//   reach     a rank touches no memory of others but staging buffers of its node's ranks, and
//             writes to none of those; signals stay inside nodes
//   layout    staging buffers of a node are laid out alike, so that a slot has one place in all
//   counting  the signals of a lane are one number that grows: a rank that sees the k-th may rely
//             on all that comes before the k-th one to any rank, and has asked for the k-th
// Says nothing about other worlds.
Verdict check_staging(const World& world);

}  // namespace paceline
