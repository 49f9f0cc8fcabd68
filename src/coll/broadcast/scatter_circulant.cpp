// Scatter-circulant broadcast: the root deals out the blocks, then what each rank knows doubles.
//
// Source   M. Barnett, L. Shuler, R. van de Geijn, S. Gupta, D. Payne, J. Watts: Interprocessor
//          collective communication library (InterCom). Scalable High Performance Computing Conf.
//          1994, 357-364. Here with the allgather of J. Bruck and others, IEEE Trans. Parallel
//          Distrib. Syst. 8(11), 1997, so that p need not be a power of two.
// Needs    nothing: any p >= 1, any n >= 0, any root; blocks may be empty.
// Cost     2 ceil(log2 p) alpha + 2 (p-1)/p n beta (exact when p divides n), in step. If messages
//          overtake each other, p no power of two, up to 7/6 rounds and 1.5 times as long.
// Scratch  at most n/2 on inner ranks.
// When     medium lengths between nodes with one rank each; with several, a ring's neighbours are
//          nearer: scatter_allgather.
// Order    moves data only.
//
// p = 4, root 0, blocks A B C D.
//                 rank 0            rank 1            rank 2            rank 3
//   start         A  B  C  D
//   round 0       A  B  C  D                          C  D
//   round 1       A  B  C  D        B                 C  D              D
//   round 2       A  B  C  D        B  C              C  D        A           D
//   round 3       A  B  C  D     A  B  C  D        A  B  C  D        A  B  C  D
#include "coll/algorithms.hpp"
#include "coll/in_two.hpp"

namespace paceline {
namespace {

void build(const Problem&, const Knobs&, Builder& b) {
  deal_and_spread(b, scatter_binomial, allgather_circulant);
}

Cost cost(const Problem& pb, const Knobs&) {
  return cost_of_two(pb, scatter_binomial, allgather_circulant);
}

}  // namespace

extern const Algorithm broadcast_scatter_circulant{
    .collective = Collective::broadcast, .name = "scatter_circulant", .cuts = block_per_rank,
    .build = build, .cost = cost};

}  // namespace paceline
