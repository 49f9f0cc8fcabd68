// LinkFit: fits the model of a link (model/machine.hpp) to measurements that other work disturbs.
//
// A look times one train of messages. Other work makes some looks longer, and so do the stalls of
// messages that an MPI announces (its rendezvous), which the shortest look misses. So small
// messages, which do not stall, count with the median of their looks, large ones with the mean.
// Doubt counts against large ones: unneeded pieces of medium length cost little, and a ring that
// lacks them loses a quarter of the link. Modest and medium messages, the alternative, count
// without their longest look (docs/design/0027-probed-machine.md).
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "model/machine.hpp"

namespace paceline {

// Number of message lengths: small, modest, medium and large. The probe takes 8, 16 and 32 KiB, and
// the bytes that a link carries in 10 ms. Every MPI sends a small message at once, most a medium
// one, one MPI a modest one only if its buffers have room for our header besides; all announce a
// large one.
inline constexpr std::size_t kLengths = 4;

// Returns the bytes of a large message: those that a link carries in 10 ms, 256 KiB to 1 MiB, as
// transport/mpi/streams.cpp cuts long messages. At 1 Gbit/s a message of 128 KiB takes so little
// time that the cores' part of it looks like a slow link.
std::size_t large_bytes(double s_per_byte);

// Seconds per byte of trains of messages of each length: small, modest, medium, large.
struct LinkSamples {
  std::array<std::vector<double>, kLengths> s_per_byte;
};

// Figures that one rank has found; 0: it has not looked. A ratio compares the time of a byte with
// its time in small messages.
struct LinkFit {
  double alpha_s = 0;
  double beta_s_per_byte = 0;        // in trains of small messages
  double modest_ratio = 0, medium_ratio = 0, large_ratio = 0;
  double gamma_s_per_byte = 0;
  double lone_s = 0;                 // one small message after a pause
  double together_s = 0;             // a round of shortest messages in which every node sends
  double alone_s = 0;                // one such message while no other node sends
  bool failed = false;
  double task_s = 0;                 // a thread wakes another and is woken by it
};

// Returns the fit of a link whose shortest messages take alpha_s.
LinkFit fit_link(const LinkSamples& looks, double alpha_s);

// Returns the part of the time of a round in which all nodes send that is due to the other nodes.
// It is not 0 if nodes share processors, or a switch is slow.
double contention(double together_s, double alone_s, int nodes);

struct MessageBytes {
  double small = 0, modest = 0, medium = 0;
};

// Returns the link for the figures that all ranks have agreed on, measured with these lengths.
Link link_of(const LinkFit& agreed, const MessageBytes& lengths, int nodes);

}  // namespace paceline
