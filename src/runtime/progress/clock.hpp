// Clock of the time-outs, traces and notes of calls. Ranks of a node can compare their readings;
// ranks of two nodes cannot.
#pragma once

namespace paceline {

double now_s();  // seconds of CLOCK_MONOTONIC

}  // namespace paceline
