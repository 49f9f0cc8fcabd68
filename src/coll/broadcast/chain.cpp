// Chain broadcast: each rank hands the message on to the next. Pipelined: the linear pipeline.
//
// Source   L. Wang, W. Wu, G. Bosilca, R. Vuduc, Z. Xu: Efficient communications in training large
//          scale neural networks, arXiv 1611.04255, section 3.1 (linear pipeline broadcast)
// Needs    nothing: any p >= 1, any n >= 0, any root.
// Cost     (p-1) (alpha + n beta); in B segments, two or more of them under way,
//          (p-2+B) (alpha + n/B beta)
// Scratch  none
// When     long messages in many segments and few ranks: then close to n beta, the bound.
// Order    moves data only.
//
// p = 3, root 0, two segments A B.
//                 rank 0    rank 1    rank 2
//   start         A B
//   round 0       A B       A
//   round 1       A B       A B       A
//   round 2       A B       A B       A B
#include "ir/algorithm.hpp"
#include "shapes/binomial.hpp"

namespace paceline {
namespace {

void build(const Problem& pb, const Knobs&, Builder& b) {
  const int v = position_of(pb.rank, pb.root, pb.ranks);
  if (v > 0) b.recv(rank_at(v - 1, pb.root, pb.ranks), {b.output()});
  if (v + 1 < pb.ranks) b.send(rank_at(v + 1, pb.root, pb.ranks), {b.output()});
}

Cost cost(const Problem& pb, const Knobs&) {
  return {.rounds = pb.ranks - 1.0, .volume = pb.ranks - 1.0, .reduced = 0,
          .messages = pb.ranks - 1.0};
}

}  // namespace

extern const Algorithm broadcast_chain{
    .collective = Collective::broadcast, .name = "chain", .build = build, .cost = cost};

}  // namespace paceline
