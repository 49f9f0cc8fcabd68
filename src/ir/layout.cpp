#include "ir/layout.hpp"

#include <algorithm>

#include "ir/contract.hpp"

namespace paceline {
namespace {

constexpr std::size_t kLeastGrains = 16;   // of a part: with fewer, parts would be too unequal

std::vector<Piece> one_after_the_other(const std::vector<std::size_t>& counts) {
  std::vector<Piece> pieces;
  std::size_t offset = 0;
  for (std::size_t count : counts) {
    pieces.push_back({offset, count});
    offset += count;
  }
  return pieces;
}

// A buffer that holds nothing but the rank's own unit.
std::vector<Piece> only(const std::vector<Piece>& units, int rank) {
  std::vector<Piece> pieces(units.size());
  pieces[static_cast<std::size_t>(rank)].count = units[static_cast<std::size_t>(rank)].count;
  return pieces;
}

}  // namespace

Piece cut(std::size_t count, int parts, int i, std::size_t grain) {
  const auto n = static_cast<std::size_t>(parts), k = static_cast<std::size_t>(i);
  if (count / n < kLeastGrains * grain) grain = 1;
  const std::size_t grains = (count + grain - 1) / grain, base = grains / n, longer = grains % n;
  const auto begin = [&](std::size_t part) {
    return std::min(count, (part * base + std::min(part, longer)) * grain);
  };
  return {begin(k), begin(k + 1) - begin(k)};
}

Piece place(const Schedule& s, const std::vector<Piece>& units, int block) {
  const int per_segment = s.units * s.cuts;
  const Piece unit = units[static_cast<std::size_t>(block % per_segment / s.cuts)];
  const Piece slice = cut(unit.count, s.pipeline, block / per_segment, s.grain);
  const int at = block % s.cuts;
  const Piece part = cut(slice.count, s.cuts / s.within, at / s.within, s.grain);
  const Piece inner = cut(part.count, s.within, at % s.within, s.grain);
  return {unit.offset + slice.offset + part.offset + inner.offset, inner.count};
}

std::size_t count_of(const Schedule& schedule, const Layout& layout, const Segment& segment) {
  const std::vector<Piece>& units = segment.like == Space::input ? layout.input : layout.output;
  std::size_t count = 0;
  for (int b = segment.first; b < segment.first + segment.blocks; ++b)
    count += place(schedule, units, b).count;
  return count;
}

Layout even_layout(const Problem& problem, std::size_t count) {
  const std::vector<std::size_t> counts(static_cast<std::size_t>(units_of(problem)), count);
  return uneven_layout(problem, counts, counts);
}

Layout uneven_layout(const Problem& p, const std::vector<std::size_t>& mine,
                     const std::vector<std::size_t>& theirs) {
  Layout layout{one_after_the_other(mine), one_after_the_other(theirs)};
  if (home(p, Space::input) == home(p, Space::output)) {   // both names mean the longer memory
    if (home(p, Space::input) == Space::output) layout.input = layout.output;
    else layout.output = layout.input;
    return layout;
  }
  const bool short_input =
      p.collective == Collective::allgather || p.collective == Collective::gather;
  const bool short_output =
      p.collective == Collective::reduce_scatter || p.collective == Collective::scatter;
  if (short_input) layout.input = only(layout.input, p.rank);
  if (short_output) layout.output = only(layout.output, p.rank);
  return layout;
}

}  // namespace paceline
