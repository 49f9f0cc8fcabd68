// LinkFit: fits the model of a link (model/machine.hpp) to looks at it that other work disturbs.
//
// A look times one train of messages. Other work makes some looks longer and not others. So do the
// stalls of messages that an MPI announces (its rendezvous), which the shortest look misses. So
// small messages, which do not stall, count with the median of their looks, large ones with the
// mean of all. Doubt counts against large ones: pieces of medium length cost little where nobody
// needs them, and a ring that needs them loses a quarter of the link without. Of modest and medium
// ones the longest look is left out, since they are the alternative to large ones
// (docs/design/0027-probed-machine.md).
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "model/machine.hpp"

namespace paceline {

// Lengths of messages, of which the probe takes 8, 16 and 32 KiB, and what a link carries in 10 ms.
// Every MPI sends a small one at once, most a medium one, one MPI a modest one only where its
// buffers have room for our header besides; all of them announce a large one.
inline constexpr std::size_t kLengths = 4;

// Of a large message: what a link carries in 10 ms, 256 KiB to 1 MiB, as transport/mpi/streams.cpp
// cuts long ones. What announcing it costs is compared with that; 128 KiB take so little time at
// 1 Gbit/s that the cores' part of it looks like a slow link.
std::size_t large_bytes(double s_per_byte);

// Seconds per byte of trains of messages of each length: small, modest, medium, large.
struct LinkSamples {
  std::array<std::vector<double>, kLengths> s_per_byte;
};

// What one rank has found; 0: it has not looked. A ratio says how many times as long as in small
// messages a byte takes.
struct LinkFit {
  double alpha_s = 0;
  double beta_s_per_byte = 0;        // in trains of small messages
  double modest_ratio = 0, medium_ratio = 0, large_ratio = 0;
  double gamma_s_per_byte = 0;
  double lone_s = 0;                 // one small message after a pause
  double together_s = 0;             // a round of shortest messages in which every node sends
  double alone_s = 0;                // one of them while nobody else sends; 0: others look
  bool failed = false;
  double task_s = 0;                 // a thread wakes another and is answered
};

// What the looks say of a link whose shortest messages take alpha_s.
LinkFit fit_link(const LinkSamples& looks, double alpha_s);

// Which part of the time of a round in which all nodes send is there because the others send: nodes
// that share processors, or a slow switch, have some.
double contention(double together_s, double alone_s, int nodes);

struct MessageBytes {
  double small = 0, modest = 0, medium = 0;
};

// The link of what all ranks have agreed on, which messages of these lengths have shown.
Link link_of(const LinkFit& agreed, const MessageBytes& lengths, int nodes);

}  // namespace paceline
