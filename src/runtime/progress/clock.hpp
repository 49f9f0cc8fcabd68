// The one clock of the core. Everything that asks for the time asks here.
#pragma once

namespace paceline {

double now_s();  // seconds of CLOCK_MONOTONIC: equal for all processes of a machine

}  // namespace paceline
