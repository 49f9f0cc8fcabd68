// Load/store schedules: nothing is sent but signals. The ranks share memory, and each does its
// steps one after the other, in its author's order.
#pragma once

#include <cstddef>

#include "ir/schedule.hpp"

namespace paceline {

bool is_load_store(const Schedule& schedule);

// What a call can count: 16 bits, of which the lowest value says that its owner is about to say
// which call this is, and the highest that it has left it.
inline constexpr std::size_t kMostSignals = 0xfffd;

// The signals that its rank gives, those that follow each other together, or that it waits for from
// one peer: the larger number.
std::size_t signals_in(const Schedule& schedule);

// The same steps, each after the one before: what is run, and so what is proven, drawn and priced.
// Signals that follow each other are given at once, and so are waits waited for.
Schedule in_order(Schedule schedule);

}  // namespace paceline
