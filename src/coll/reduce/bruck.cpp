// Bruck's reduce: blocks travel to their owners unsummed, many in one message; sums to the root.
//
// Source   J. Bruck, C.-T. Ho, S. Kipnis, E. Upfal, D. Weathersby: Efficient algorithms for
//          all-to-all communications in multiport message-passing systems. IEEE Trans. Parallel
//          Distrib. Syst. 8(11):1143-1156, 1997. doi 10.1109/71.642949: its alltoall, with every
//          owner's sum after it; then the binomial gather.
// Needs    nothing: any p >= 1, any n >= 0, any root, operands stay in rank order.
// Cost     2 ceil(log2 p) alpha + about (log2(p)/2 + 1) n beta + (p-1)/p n gamma, as of the
//          reduce-scatter of the same name, and (p-1)/p n beta (exact when p divides n; beyond 16
//          ranks a part of gamma is hidden)
// Scratch  less than 2 n; n/p more, and at most n/2 on inner ranks, where not the root.
// When     many ranks, medium messages, and operands that stay in order: few rounds.
// Order    rank order from left to right, whatever the root; beyond 16 ranks first in equal groups
//          of at most 16, unless the order is to be canonical: same bits in every run.
//
// p = 3, root 0, blocks A B C; a digit is a contribution, * is final. What has come is in scratch.
//                 rank 0            rank 1            rank 2
//   start         A0   B0   C0      A1   B1   C1      A2   B2   C2
//   round 0       A0 A2   C0        B1 B0   A1        C2 C1   B2
//   round 1       A*                B*                C*
//   round 2       A*   B*                B*                C*
//   round 3       A*   B*   C*           B*                C*
#include "coll/registry.hpp"
#include "ir/compose.hpp"

namespace paceline {
namespace {

int cuts(const Problem& pb, const Knobs&) { return pb.ranks; }

// Only the root has an output; another rank has room of its own for the block that it sums.
void build(const Problem& pb, const Knobs&, Builder& b) {
  const Region input = region_of(b.input());
  const Region sums = pb.rank == pb.root ? region_of(b.output())
                                         : region_in(b.scratch(b.input(pb.rank)), input);
  const std::vector<int> everybody = all_ranks(pb.ranks);
  compose(b, pb.rank,
          {{.algorithm = &reduce_scatter_bruck, .members = everybody, .input = input,
            .output = sums, .completes = true},
           {.algorithm = &gather_binomial, .members = everybody, .root = pb.root, .input = sums,
            .output = sums, .whole = true, .reads_scratch = true}});
}

Cost cost(const Problem& pb, const Knobs&) {
  const Cost sums = reduce_scatter_bruck.cost(pb, {}), rest = gather_binomial.cost(pb, {});
  return {.rounds = sums.rounds + rest.rounds, .volume = sums.volume + rest.volume,
          .reduced = sums.reduced};
}

}  // namespace

const Algorithm reduce_bruck{.collective = Collective::reduce,
                             .name = "bruck",
                             .rejects = serves_all,
                             .cuts = cuts,
                             .build = build,
                             .cost = cost,
                             .canonical = true};

}  // namespace paceline
