// Layout: the table, given when a call starts, that turns block indices into places.
#pragma once

#include <cstddef>
#include <vector>

#include "ir/schedule.hpp"

namespace paceline {

// Part of a buffer, in elements.
struct Piece {
  std::size_t offset = 0;
  std::size_t count = 0;
};

// Place of every unit of the message in the caller's buffers; a unit that it does not have is
// empty.
struct Layout {
  std::vector<Piece> input;
  std::vector<Piece> output;
};

// Part i of `count` elements cut into `parts`, in grains of `grain` elements unless a part would
// have few of those. Grains that cannot be shared out go to the first parts, one each; only the
// last grain, in the last part, may be shorter.
Piece cut(std::size_t count, int parts, int i, std::size_t grain = 1);

// Place of a block in the buffer with these units: the pipeline segment cuts the unit first, then
// the algorithm's cuts do, in one step or in two (Schedule::within).
Piece place(const Schedule& schedule, const std::vector<Piece>& units, int block);

// Elements of a range of blocks.
std::size_t count_of(const Schedule& schedule, const Layout& layout, const Segment& segment);

// The layout of equal units: of `count` elements each (one vector if the collective has one). Under
// reduce_scatter and its like the caller's own unit lies at the beginning of its short buffer.
Layout even_layout(const Problem& problem, std::size_t count);

// The same for units of differing size, one after the other; for alltoall `mine` is what this rank
// sends and `theirs` what it receives, elsewhere both are the sizes of the units.
Layout uneven_layout(const Problem& problem, const std::vector<std::size_t>& mine,
                     const std::vector<std::size_t>& theirs);

}  // namespace paceline
