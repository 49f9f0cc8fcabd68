// Cuts of calls in memory that ranks share, so that they fit staging buffers.
#pragma once

#include <optional>

#include "tune/choice.hpp"
#include "tune/table.hpp"

namespace paceline {

inline constexpr int kMostBlocks = 4096;   // of one call

// Returns the blocks of a row for shared memory; nothing if staging buffers have no room for them.
// `named`: the caller has named the algorithm. One that takes no blocks is then taken whatever room
// there is; compile() refuses a call that has none.
std::optional<Cut> cut_in_memory(const Row& row, const Problem& p, const ChoiceInputs& now,
                                 bool named);

// Returns the number of segments, at least the choice's, that have room with `window` of them under
// way, on several nodes whose ranks stage (stages_in_nodes()); nothing if there is never room.
std::optional<int> segments_with_room(const Choice& choice, const Problem& p,
                                      const ChoiceInputs& now, int window);

// An allreduce whose positions ranks of a node claim shows its message whole, or in segments, two
// at a time, if it is longer than the staging buffers. A rank does its steps in order: when it
// comes to a segment, all ranks have left the one before the last.
inline constexpr int kClaimedWindow = 2;
bool claims_in_segments(const Algorithm& algorithm);
int segments_in_stage(Problem problem, const ChoiceInputs& now, const Choice& choice);

// Throws a usage error if a claimed algorithm cannot go in the segments that are asked for.
void check_claimed(const Algorithm& algorithm, const Cut& wish);

}  // namespace paceline
