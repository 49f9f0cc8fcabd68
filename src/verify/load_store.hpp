// What the load/store reading of a schedule relies on besides the order of steps.
#pragma once

#include "verify/match.hpp"
#include "verify/verify.hpp"

namespace paceline {

// Of a world whose ranks share memory: nobody sends; slots are equally large on all ranks, so that
// a peer's place is known from the own one; a rank's signals are one number that grows, so
// whoever it signals it signals from the first time on, and who waits for its signals does so in
// their order. Says
// nothing about other worlds.
Verdict check_straight(const World& world);

}  // namespace paceline
