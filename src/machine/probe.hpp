// Probe: measures the network between the nodes of a job when it starts.
//
// The first ranks of some nodes pass messages round a ring: one byte for alpha, then trains of
// messages of four lengths in turn (link_fit.hpp). All rings run at the same time, as in real
// calls, and the messages are this library's, so that the figures include its transport. All ranks
// take the worst figures of any rank. Only a first start measures all this; later ones compare a
// sample, a single short train, with that of the first.
#pragma once

#include <vector>

#include "machine/link_fit.hpp"
#include "runtime/communicator.hpp"
#include "runtime/world.hpp"

namespace paceline {

// Returns the first rank of every node, in order; `nodes`: the node of every rank.
std::vector<int> first_ranks(const std::vector<int>& nodes);

// Returns the ring of the first rank of this rank's node. Every node is in one ring, of two or
// more.
std::vector<int> probing_ring(const std::vector<int>& nodes, int rank);

// Measures the links of a ring. Collective over the ring.
LinkFit look_at_links(Communicator& ring);

// Measures a round in which every node sends, and a message that is under way alone. Collective
// over the first ranks of all nodes. The ranks of one ring pass `ring`: they send the lone messages
// while all others wait in a barrier.
void look_at_contention(Communicator& firsts, Communicator* ring, LinkFit& found);

// Returns the machine of the worst figures of all ranks, or the one assumed before if a rank has
// failed or none has looked. Collective; equal on all ranks.
Assumed agree_on_links(Communicator& all, const LinkFit& mine);

// Takes the sample: seconds per byte of a short train round every ring, the longest of all ranks; 0
// if it failed. `beta` is the link's, in seconds per byte, and sets the length of the train.
// Collective, once per world; equal on all ranks.
double sample_links(Communicator& all, const WorldConfig& config, double beta);

// True if `sample` is 0. Else true if a sample taken now is close to it, and a one-byte message
// takes not much less time than the link's alpha. Repeats a sample that disagrees. Collective, once
// per world; equal on all ranks.
bool agrees_with(Communicator& all, const WorldConfig& config, const Link& link, double sample);

// Makes the whole probe. Collective over the ranks of a world on several nodes. A failure is no
// error: the machine stays as assumed before.
Assumed probed(Communicator all, const WorldConfig& config);

}  // namespace paceline
