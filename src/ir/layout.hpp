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

// Where every unit of the message lies in the caller's buffers; a unit it does not have is empty.
struct Layout {
  std::vector<Piece> input;
  std::vector<Piece> output;
};

// Part i of `count` elements cut into `parts`. They are cut in grains of so many elements, unless a
// part would have few of those; of what cannot be shared out the first parts have one each, and
// the last part is where the last grain may end early.
Piece cut(std::size_t count, int parts, int i, std::size_t grain = 1);

// Where a block lies in the buffer with these units: the pipeline segment cuts the unit first, then
// the algorithm's cuts do, in one step or in two (Schedule::within).
Piece place(const Schedule& schedule, const std::vector<Piece>& units, int block);

// Elements of a range of blocks.
std::size_t count_of(const Schedule& schedule, const Layout& layout, const Segment& segment);

// The layout of equal units: of `count` elements each (one vector where the collective has one).
// Under reduce_scatter and its like the caller's own unit lies at the beginning of its short
// buffer.
Layout even_layout(const Problem& problem, std::size_t count);

// The same for units of differing size, one after the other; for alltoall `mine` is what this rank
// sends and `theirs` what it receives, elsewhere both are the sizes of the units.
Layout uneven_layout(const Problem& problem, const std::vector<std::size_t>& mine,
                     const std::vector<std::size_t>& theirs);

}  // namespace paceline
