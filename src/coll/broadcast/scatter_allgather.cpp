// Scatter-allgather broadcast: the root deals out the blocks, then all gather them.
//
// Source   M. Barnett, L. Shuler, R. van de Geijn, S. Gupta, D. Payne, J. Watts: Interprocessor
//          collective communication library (InterCom). Scalable High Performance Computing Conf.
//          1994, 357-364. Here with a ring allgather.
// Needs    nothing: any p >= 1, any n >= 0, any root; blocks may be empty.
// Cost     (ceil(log2 p) + p-1) alpha + 2 (p-1)/p n beta (exact when p divides n)
// Scratch  at most n/2 on inner ranks.
// When     long messages in one segment; in many segments a chain reaches n beta.
// Order    moves data only.
//
// p = 4, root 0, blocks A B C D.
//                 rank 0            rank 1            rank 2            rank 3
//   start         A  B  C  D
//   round 0       A  B  C  D                          C  D
//   round 1       A  B  C  D        B                 C  D              D
//   round 2       A  B  C  D     A  B                 B  C  D              C  D
//   round 3       A  B  C  D     A  B     D        A  B  C  D           B  C  D
//   round 4       A  B  C  D     A  B  C  D        A  B  C  D        A  B  C  D
#include "coll/algorithms.hpp"
#include "coll/in_two.hpp"

namespace paceline {
namespace {

void build(const Problem&, const Knobs&, Builder& b) {
  deal_and_spread(b, scatter_binomial, allgather_ring);
}

Cost cost(const Problem& pb, const Knobs&) {
  return cost_of_two(pb, scatter_binomial, allgather_ring);
}

}  // namespace

extern const Algorithm broadcast_scatter_allgather{
    .collective = Collective::broadcast, .name = "scatter_allgather", .cuts = block_per_rank,
    .build = build, .cost = cost};

}  // namespace paceline
