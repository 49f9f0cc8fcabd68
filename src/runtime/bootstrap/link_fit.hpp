// LinkFit: what a link is like, from looks at it that noise has been at.
//
// Other work adds to some looks and not to others. So do the stalls of messages that an MPI
// announces, and the least of some looks misses them. So small messages, which do not stall, are
// judged by the middle one of their looks, large ones by the mean of all. What is in doubt counts
// against those: pieces of medium length cost little where nobody needs them, and a ring that needs
// them loses a quarter of the link without. Of those between the worst look is left out, since they
// are the way out (docs/design/0027-probed-machine.md).
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "model/machine.hpp"

namespace paceline {

// Small is what every MPI sends at once, modest what one does only where its buffers have room for
// our header, medium what most do, large what any of them announces.
inline constexpr std::size_t kLengths = 4;

// Seconds per byte of trains of messages of each length: small, modest, medium, large.
struct LinkSamples {
  std::array<std::vector<double>, kLengths> s_per_byte;
};

// What one rank has found; 0: it has not looked.
struct LinkFit {
  double alpha_s = 0;
  double beta_s_per_byte = 0;        // of small messages
  double modest_ratio = 0;           // how many times as long a byte of these takes,
  double medium_ratio = 0;           // of these,
  double large_ratio = 0;            // and of these
  double gamma_s_per_byte = 0;
  double short_s = 0;                // of one small message after a pause
  double together_s = 0;             // of a round in which every node sends its shortest message
  double alone_s = 0;                // of such a message while nobody else sends; 0: of other ranks
  bool failed = false;
  double task_s = 0;                 // of a thread that wakes another and is answered
};

// What the looks say of a link whose shortest messages take alpha_s.
LinkFit judged(const LinkSamples& looks, double alpha_s);

// Of a round in which every one of so many nodes sends, the part that is there because the others
// do: nodes that share processors, or a switch that is slow, have some.
double contention(double together_s, double alone_s, int nodes);

struct Bytes {
  double small = 0, modest = 0, medium = 0;
};

// The link of these figures, which are equal on all ranks.
Link link_of(const LinkFit& agreed, const Bytes& lengths, int nodes);

}  // namespace paceline
