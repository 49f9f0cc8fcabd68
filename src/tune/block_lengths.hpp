// BlockLengths: lengths of the blocks in which calls go through memory that ranks share.
//
// Equal on all ranks, so it does not ask which processor this is. docs/design/0019-straight.md has
// the figures. To tune other processors change the one instance, and say where it was measured.
#pragma once

#include <cstddef>

namespace paceline {

// Lengths are bytes.
struct BlockLengths {
  const char* measured_on;

  // Through staging buffers. Shorter blocks mean more barriers, longer ones leave the caches.
  std::size_t flow_from;                 // the shortest message that is cut
  int flow_pieces;                       // into so many blocks at least,
  int flow_part;                         // of this part of the message,
  std::size_t flow_least, flow_most;     // in these limits: some ranks copy in, others out
  std::size_t rank_slice;                // of a block that more than two ranks share,
  std::size_t shared_least, shared_most; // in these limits: all blocks under way stay in caches
  std::size_t pair_whole;                // the longest message of two ranks in one block;
  int pair_part;                         // then this part of it,
  std::size_t pair_least, pair_most;     // in these limits,
  int pair_long_part;                    // or this part, if it is longer,
  std::size_t pair_long_most;            // up to this

  // In symmetric memory.
  int symmetric_blocks;                  // of a message of which each rank has
  std::size_t symmetric_part;            // this much in each block
  std::size_t symmetric_sum;             // a rank's part of a block whose sum takes several steps
  std::size_t most_symmetric_sums;       // blocks
};

inline constexpr BlockLengths kBlockLengths{
    .measured_on = "2 cores of an Intel Xeon (Sapphire Rapids, a virtual machine), 2026-11-23",
    .flow_from = 32u << 10, .flow_pieces = 4, .flow_part = 16,
    .flow_least = 64u << 10, .flow_most = 512u << 10,
    .rank_slice = 16u << 10, .shared_least = 128u << 10, .shared_most = 1u << 20,
    .pair_whole = 512u << 10, .pair_part = 8, .pair_least = 128u << 10, .pair_most = 256u << 10,
    .pair_long_part = 128, .pair_long_most = 512u << 10,
    .symmetric_blocks = 4, .symmetric_part = 128u << 10, .symmetric_sum = 256u << 10,
    .most_symmetric_sums = 256};

}  // namespace paceline
