// The clock of calls: their time-outs, traces and notes. Its readings of two ranks of a node can be
// compared; those of two nodes cannot.
#pragma once

namespace paceline {

double now_s();  // seconds of CLOCK_MONOTONIC

}  // namespace paceline
