// The slow reference: what the memory of every rank holds before a call and must hold after it.
//
// A rank has two blocks of memory for a call, each with an edge around it that nobody may touch. In
// place both buffers lie in one of them.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "fuzz/program.hpp"

namespace paceline::fuzz {

inline constexpr std::size_t kEdge = 64;   // bytes on either side of a block

struct Extent {          // of a buffer
  int block = 0;
  std::size_t at = 0;  // elements, behind the edge and the shift
  std::size_t count = 0;
};

// Where the buffers of a position lie. A buffer that the rank does not have has no elements.
struct Frame {
  Extent input, output;
  std::size_t elements[2] = {0, 0};   // of the blocks
  bool in_place = false;
};

Frame frame_of(const Program& program, int call, int position);
std::size_t block_bytes(const Program& program, int call, const Frame& frame, int block);
// Elements of the unit between positions a and b, or of unit a where there is one per rank.
std::size_t unit_count(const Invocation& call, int ranks, int a, int b = 0);

using Blocks = std::array<std::span<unsigned char>, 2>;

void fill(const Program& program, int call, int position, Blocks blocks);   // as before the call

// Empty, or what is wrong with the blocks after the call.
std::string flaw(const Program& program, int call, int position, Blocks blocks);

// Equal exactly for equal results: what ranks compare, and a call with its repetition.
std::uint64_t digest(const Program& program, int call, int position, Blocks blocks);
// Whether all ranks of the call must have the same bits.
bool same_everywhere(const Invocation& call);

}  // namespace paceline::fuzz
