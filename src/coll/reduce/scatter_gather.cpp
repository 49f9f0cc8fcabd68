// Scatter-gather reduce: every rank sums one block, then the root gathers the sums.
//
// Source   R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication
//          operations in MPICH. Int. J. High Perform. Comput. Appl. 19(1):49-66, 2005.
//          doi 10.1177/1094342005051521. Rabenseifner's reduce, here with a circulant
//          reduce-scatter, so that p need not be a power of two.
// Needs    commutative op. Any p >= 1, any n >= 0, any root; blocks may be empty.
// Cost     2 ceil(log2 p) alpha + 2 (p-1)/p n beta + (p-1)/p n gamma (exact when p divides n and is
//          a power of two; otherwise a part of gamma is hidden).
// Scratch  at most 5/4 n elements; n/p more, and at most n/2 on inner ranks, where not the root.
// When     medium lengths, which are too short for a pipe.
// Order    as in reduce_scatter/circulant, ranks counted from the root: same bits in every run.
//
// p = 3, root 0, blocks A B C; a digit is a contribution, * is final. Partial sums are in scratch.
//                 rank 0            rank 1            rank 2
//   start         A0   B0   C0      A1   B1   C1      A2   B2   C2
//   round 0       A01                    B12                    C02
//   round 1       A*                     B*                     C*
//   round 2       A*   B*                B*                     C*
//   round 3       A*   B*   C*           B*                     C*
#include "coll/algorithms.hpp"
#include "coll/in_two.hpp"
#include "coll/rejects.hpp"
#include "ir/compose.hpp"
#include "shapes/binomial.hpp"

namespace paceline {
namespace {

std::optional<Reason> rejects(const Problem& pb) {
  return unless_commutative(pb, "every block is summed from another rank on", "linear");
}

// Only the root has an output; another rank has room of its own for the block that it sums. Ranks
// and blocks are counted from the root.
void build(const Problem& pb, const Knobs&, Builder& b) {
  const int v = position_of(pb.rank, pb.root, pb.ranks);
  const Region input = region_of(b.input());
  const Region sums =
      v == 0 ? region_of(b.output()) : region_in(b.scratch(b.input(v)), input);
  std::vector<int> everybody;
  for (int i = 0; i < pb.ranks; ++i) everybody.push_back(rank_at(i, pb.root, pb.ranks));
  compose(b, pb.rank,
          {{.algorithm = &reduce_scatter_circulant, .members = everybody, .input = input,
            .output = sums, .completes = true},
           {.algorithm = &gather_binomial, .members = everybody, .input = sums, .output = sums,
            .whole = true, .reads_scratch = true}});
}

Cost cost(const Problem& pb, const Knobs&) {
  return cost_of_two(pb, reduce_scatter_circulant, gather_binomial);
}

}  // namespace

extern const Algorithm reduce_scatter_gather{
    .collective = Collective::reduce, .name = "scatter_gather", .rejects = rejects,
    .cuts = block_per_rank, .build = build, .cost = cost};

}  // namespace paceline
