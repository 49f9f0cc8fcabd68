// Probe: what a job of several nodes finds out about the network between them when it starts.
//
// The first ranks of some nodes pass messages round a ring, all at the same time, since that is the
// load that counts: short ones for alpha, then trains of three lengths in turn (figures.hpp). They
// are messages of this library, so that what its transport adds is part of it. The worst
// figures that anybody has found go to all ranks.
#pragma once

#include <vector>

#include "runtime/communicator.hpp"
#include "runtime/bootstrap/link_fit.hpp"

namespace paceline {

// Of every node, in order.
std::vector<int> first_ranks(const std::vector<int>& nodes);

// The ring in which the ranks of a node look, by the node of every rank: its first rank and those
// of some other nodes. Every node is in one ring of two or more.
std::vector<int> probing_ring(const std::vector<int>& nodes, int rank);

// Collective over the ring, whose ranks it tells apart by nothing but their times.
LinkFit look_at_links(Communicator& ring);

// What a round costs when every node sends, and a message that is under way alone. Collective over
// the first ranks of all nodes; one ring of them comes with its ring, the others wait for it.
void look_at_contention(Communicator& firsts, Communicator* ring, LinkFit& found);

// Collective: the worst figures of all ranks as a machine, the same on all of them. Where any has
// failed, or nobody has looked, what was assumed before.
Assumed agree_on_links(Communicator& all, const LinkFit& mine);

// What a later start compares: seconds per byte of a short train round every ring, the longest of
// all ranks and the same on all of them; 0 where it failed. `beta` is the link's. Collective, once
// per world.
double sample_links(Communicator& all, const WorldConfig& config, double beta);

// Whether such a sample is what it was then, 0 agreeing with all, and a short message takes no less
// time than the link's alpha says. Looks again before it denies the former. Collective, once per
// world, and equal on all ranks.
bool agrees_with(Communicator& all, const WorldConfig& config, const Link& link, double sample);

// All of it. Collective over the ranks of a world on several nodes. What goes wrong while looking
// is no error: then nothing is known.
Assumed probed(Communicator all, const WorldConfig& config);

}  // namespace paceline
