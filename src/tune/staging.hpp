// Room for the segments of schedules that use the staging buffers of a node: of several
// (stages_in_nodes()), or of one whose positions are claimed.
#pragma once

#include "tune/choose.hpp"

namespace paceline {

// Whether the segments under way have room there, at most `most_window` at a time; if need be makes
// the choice's segments more, and fewer of them go on at a time.
bool fits_staging(Choice& choice, const Problem& p, const ChoiceInputs& now, int most_window);

// An allreduce whose positions ranks of a node claim shows its message whole: in segments where it
// is longer than the staging buffers, two at a time. A rank does its steps in order, so that who
// comes to a segment knows that all have left the one before the last.
inline constexpr int kClaimedWindow = 2;
bool claims_in_segments(const Algorithm& algorithm);
int segments_in_stage(Problem problem, const ChoiceInputs& now, const Choice& choice);

// Throws a usage error where a claimed algorithm cannot go in the segments that are asked for.
void check_claimed(const Algorithm& algorithm, const Cut& wish);

}  // namespace paceline
