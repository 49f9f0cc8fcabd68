// Probe: what a job of several nodes finds out about the network between them when it starts.
//
// The first ranks of some nodes pass messages round a ring, all rings at the same time, since that
// is the load that counts: one byte for alpha, then trains of messages of four lengths in turn
// (link_fit.hpp). They are messages of this library, so that what its transport adds is part of it.
// The worst figures that any rank has found go to all ranks. A first start looks at all that; later
// ones compare a sample, a single short train, with the one that was taken then.
#pragma once

#include <vector>

#include "machine/link_fit.hpp"
#include "runtime/communicator.hpp"
#include "runtime/world.hpp"

namespace paceline {

// The first rank of every node, in order; `nodes`: the node of every rank.
std::vector<int> first_ranks(const std::vector<int>& nodes);

// The ring in which the first rank of this rank's node looks: it and those of some other nodes.
// Every node is in one ring, of two or more.
std::vector<int> probing_ring(const std::vector<int>& nodes, int rank);

// Collective over the ring.
LinkFit look_at_links(Communicator& ring);

// What a round costs in which every node sends, and a message that is under way alone. Collective
// over the first ranks of all nodes. The ranks of one ring pass `ring`, in which they send those
// messages one at a time while all others wait in a barrier.
void look_at_contention(Communicator& firsts, Communicator* ring, LinkFit& found);

// Collective: the worst figures of all ranks as a machine, the same on all of them. Where any has
// failed, or nobody has looked, what was assumed before.
Assumed agree_on_links(Communicator& all, const LinkFit& mine);

// The sample: seconds per byte of a short train round every ring, the longest of all ranks and the
// same on all of them; 0 where it failed. `beta` is the link's, in seconds per byte: it says how
// short. Collective, once per world.
double sample_links(Communicator& all, const WorldConfig& config, double beta);

// Whether a sample is now what `sample` says it was then, or that is 0, and a one-byte message
// takes not much less time than the link's alpha. Looks again before it denies the former.
// Collective, once per world, and equal on all ranks.
bool agrees_with(Communicator& all, const WorldConfig& config, const Link& link, double sample);

// All of it. Collective over the ranks of a world on several nodes. What goes wrong while looking
// is no error: then nothing is known.
Assumed probed(Communicator all, const WorldConfig& config);

}  // namespace paceline
