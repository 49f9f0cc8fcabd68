// Sorted chain broadcast: each rank hands the message on to the next, late ranks the last ones.
//
// Source   P. Patarasuk, X. Yuan: Efficient MPI_Bcast across different process arrival patterns.
//          IPDPS 2008. doi 10.1109/IPDPS.2008.4536308; here the late ranks are known before.
// Needs    late ranks known to all. Any p >= 1, any n >= 0, any root.
// Cost     in B blocks (p-2+B) (alpha + n/B beta); after the last of k late ranks
//          (k-1+B) (alpha + n/B beta)
// Scratch  none
// When     long messages in many blocks and few ranks, of which some come late: the others do not
//          wait for them, as they would for a segment's turn.
// Order    moves data only.
//
// p = 3, root 0, rank 1 is late, two blocks A B.
//                 rank 0    rank 1    rank 2
//   start         A B
//   round 0       A B                 A
//   round 1       A B                 A B
//   round 2       A B       A         A B
//   round 3       A B       A B       A B
#include "coll/late.hpp"
#include "ir/algorithm.hpp"

namespace paceline {
namespace {

constexpr int kBlocks = 8;

int cuts(const Problem&, const Knobs& knobs) { return knobs.blocks > 0 ? knobs.blocks : kBlocks; }

void build(const Problem& pb, const Knobs& knobs, Builder& b) {
  std::vector<int> down = Sides(pb).in_order();
  std::erase(down, pb.root);
  down.insert(down.begin(), pb.root);
  const auto at = std::size_t(std::find(down.begin(), down.end(), pb.rank) - down.begin());
  for (int block = 0; block < cuts(pb, knobs); ++block) {
    if (at > 0) b.recv(down[at - 1], {b.output(block)});
    if (at + 1 < down.size()) b.send(down[at + 1], {b.output(block)});
  }
}

Cost cost(const Problem& pb, const Knobs& knobs) {
  const double hops = pb.ranks - 1, blocks = cuts(pb, knobs);
  if (pb.ranks == 1) return {};
  return {.rounds = hops + blocks - 1, .volume = (hops + blocks - 1) / blocks, .reduced = 0,
          .messages = hops * blocks};
}

}  // namespace

extern const Algorithm broadcast_sorted_chain{
    .collective = Collective::broadcast, .name = "sorted_chain", .cuts = cuts, .build = build,
    .cost = cost, .takes = kTakesBlocks, .arrivals = Arrivals::predicted};

}  // namespace paceline
