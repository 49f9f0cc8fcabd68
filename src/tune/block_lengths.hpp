// BlockLengths: lengths of the blocks in which calls go through memory that ranks share.
//
// Equal on all ranks. Figures: docs/design/0019-straight.md, 0014-shared-buffers.md. To tune other
// processors change the one instance, and say where it was measured.
#pragma once

#include <cstddef>

namespace paceline {

struct BlockLengths {   // in bytes
  const char* measured_on;

  // Through staging buffers. Shorter blocks mean more barriers, longer ones leave the caches.
  std::size_t flow_from;                 // shortest message that is cut
  int flow_pieces;                       // least number of its blocks
  int flow_part;                         // a block is the message divided by this
  std::size_t flow_least, flow_most;     // limits of a block: some ranks copy in, others out
  std::size_t rank_slice;                // per rank, of a block that more than two ranks share
  std::size_t shared_least, shared_most; // limits of a block: all blocks under way stay in caches
  std::size_t pair_whole;                // longest message of two ranks in one block
  int pair_part;                         // a block of a longer one is the message divided by this,
  std::size_t pair_least, pair_most;     // within these limits,
  int pair_long_part;                    // or divided by this, if that is longer,
  std::size_t pair_long_most;            // up to this limit

  // In symmetric memory.
  int symmetric_blocks;                  // number of blocks of a long message
  std::size_t symmetric_part;            // a rank's least part of each of these blocks
  std::size_t symmetric_sum;             // a rank's part of a block whose sum takes several steps
  std::size_t most_symmetric_sums;       // largest number of such blocks
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
