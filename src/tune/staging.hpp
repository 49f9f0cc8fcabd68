// How calls are cut in memory that ranks share, so that they fit staging buffers.
#pragma once

#include <optional>

#include "tune/choice.hpp"
#include "tune/table.hpp"

namespace paceline {

inline constexpr int kMostBlocks = 4096;   // that a caller asks for

// The blocks of a row for shared memory; nothing where the staging buffers have no room for them.
// `named`: the caller has named the algorithm. One that takes no blocks is then taken whatever room
// there is; compile() refuses a call that has none.
std::optional<Cut> cut_in_memory(const Row& row, const Problem& p, const ChoiceInputs& now,
                                 bool named);

// Of several nodes whose ranks stage (stages_in_nodes()): in how many segments, at least as many as
// the choice has, it has room there with so many under way at a time; none where it never has.
std::optional<int> segments_with_room(const Choice& choice, const Problem& p,
                                      const ChoiceInputs& now, int window);

// An allreduce whose positions ranks of a node claim shows its message whole: in segments where it
// is longer than the staging buffers, two at a time. A rank does its steps in order, so that who
// comes to a segment knows that all have left the one before the last.
inline constexpr int kClaimedWindow = 2;
bool claims_in_segments(const Algorithm& algorithm);
int segments_in_stage(Problem problem, const ChoiceInputs& now, const Choice& choice);

// Throws a usage error where a claimed algorithm cannot go in the segments that are asked for.
void check_claimed(const Algorithm& algorithm, const Cut& wish);

}  // namespace paceline
