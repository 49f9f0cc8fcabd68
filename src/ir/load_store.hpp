// Load/store schedules: ranks send signals only. They share memory, and each does its steps one
// after the other, in its author's order.
#pragma once

#include <cstddef>

#include "ir/schedule.hpp"

namespace paceline {

bool is_load_store(const Schedule& schedule);

// Most signals that a call can count, in 16 bits: the lowest value says that the owner is about to
// name its call, the highest that it has left it.
inline constexpr std::size_t kMostSignals = 0xfffd;

// Number of signals that its rank gives, of which consecutive ones count as one, or that it waits
// for from one peer, whichever is larger.
std::size_t signals_in(const Schedule& schedule);

// The same steps, each after the one before, as they are run, proven, drawn and priced. Consecutive
// signals are given at once, and consecutive waits are waited for together.
Schedule in_order(Schedule schedule);

}  // namespace paceline
