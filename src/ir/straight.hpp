// Straight schedules: nothing is sent but signals. The ranks share memory, and each does its steps
// one after the other, in its author's order.
#pragma once

#include "ir/schedule.hpp"

namespace paceline {

bool is_straight(const Schedule& schedule);

// The same steps, each after the one before: what is run, and so what is proven, drawn and priced.
// Signals that follow each other are given at once, and so are waits waited for.
Schedule in_order(Schedule schedule);

}  // namespace paceline
