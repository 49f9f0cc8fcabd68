// Chain allreduce: sums run down the chain to rank 0, which sends the result down the same chain.
//
// Source   L. Wang, W. Wu, G. Bosilca, R. Vuduc, Z. Xu: Efficient communications in training large
//          scale neural networks, arXiv 1611.04255, section 3 (linear pipeline allreduce)
// Needs    nothing: any p >= 1, any n >= 0, operands stay in rank order.
// Cost     (p-1) (2 alpha + 2 n beta + n gamma); in B segments, enough of them under way, about
//          2 (p-2+B) (alpha + n/B beta)
// Scratch  2 n elements on ranks between others, n at rank 0; n less where the transport adds as it
//          receives.
// When     long messages in many segments, few ranks, and operands that must stay in rank order;
//          or when rank 0 comes late: then n beta is left to do.
// Order    the last rank first, every other one in front of it: same bits on every rank and in
//          every run.
//
// p = 3; a digit is a contribution, * is final. The result goes from rank 0 to the last rank and
// down: all messages run the same way round, and with many segments every rank sends and receives
// without a pause.
//                 rank 0    rank 1    rank 2
//   start         0         1         2
//   round 0       0         12        2
//   round 1       *         12        2
//   round 2       *         12        *
//   round 3       *         *         *
#include "coll/algorithms.hpp"
#include "ir/compose.hpp"

namespace paceline {
namespace {

void build(const Problem& pb, const Knobs&, Builder& b) {
  const Region input = region_of(b.input()), output = region_of(b.output());
  std::vector<int> down{0};
  for (int r = pb.ranks - 1; r > 0; --r) down.push_back(r);
  compose(b, pb.rank,
          {{.algorithm = &reduce_chain, .members = all_ranks(pb.ranks),
            .input = input, .output = output, .completes = true},
           {.algorithm = &broadcast_chain, .members = down,
            .input = output, .output = output}});
}

Cost cost(const Problem& pb, const Knobs&) {
  const double hops = pb.ranks - 1;
  return {.rounds = 2 * hops, .volume = 2 * hops, .reduced = hops};
}

}  // namespace

extern const Algorithm allreduce_chain{
    .collective = Collective::allreduce, .name = "chain", .build = build, .cost = cost};

}  // namespace paceline
