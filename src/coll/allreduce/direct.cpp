// Direct allreduce: every block goes straight to its owner, and its sum straight to all ranks.
//
// Source   J. Dean et al.: Large scale distributed deep networks. NIPS 2012 (sharded parameter
//          servers); here every rank is the server of one block.
// Needs    nothing: any p >= 1, any n >= 0, operands stay in rank order.
// Cost     (p-1) (2 alpha + 2 n/p beta + n/p gamma) (exact when p divides n; beyond 16 ranks a part
//          of gamma is hidden)
// Scratch  n elements and a block: what has come is kept until all is there.
// When     non-commutative operations; 16-bit floats, which are rounded once up to 16 ranks and
//          twice up to 256, instead of once a rank; few ranks. Rounds grow with p.
// Order    rank order, beyond 16 ranks in groups: same bits on every rank and in every run,
//          whatever comes first and however the message is cut.
//
// p = 3, blocks A B C; a digit is a contribution, * is final. Received data is in scratch.
//                 rank 0            rank 1            rank 2
//   start         A0   B0   C0      A1   B1   C1      A2   B2   C2
//   round 0       A0 A2             B0 B1             C1 C2
//   round 1       A*                B*                C*
//   round 2       A*        C*      A*   B*                B*   C*
//   round 3       A*   B*   C*      A*   B*   C*      A*   B*   C*
#include "coll/algorithms.hpp"
#include "coll/in_two.hpp"

namespace paceline {
namespace {

void build(const Problem&, const Knobs&, Builder& b) {
  scatter_and_spread(b, reduce_scatter_direct, allgather_linear);
}

Cost cost(const Problem& pb, const Knobs&) {
  const double share = double(pb.ranks - 1) / pb.ranks;
  return {.rounds = 2.0 * (pb.ranks - 1), .volume = 2 * share, .reduced = share};
}

}  // namespace

extern const Algorithm allreduce_direct{
    .collective = Collective::allreduce, .name = "direct", .cuts = block_per_rank, .build = build,
    .cost = cost, .bits = Bits::by_rank};

}  // namespace paceline
