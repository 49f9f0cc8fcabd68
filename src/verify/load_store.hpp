// Conditions of the load/store reading of a schedule besides the order of steps.
#pragma once

#include "verify/match.hpp"
#include "verify/verify.hpp"

namespace paceline {

// In a world whose ranks share memory: no rank sends a message; slots are equally large on all
// ranks, so that a peer's place is known from the own one; a rank's signals are one number that
// grows, so a peer gets its signals from the first one on, and waits for them in their order. Says
// nothing about other worlds.
Verdict check_straight(const World& world);

}  // namespace paceline
