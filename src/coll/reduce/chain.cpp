// Chain reduce: each rank adds its own to what comes and hands it on. Pipelined: a linear pipeline.
//
// Source   L. Wang, W. Wu, G. Bosilca, R. Vuduc, Z. Xu: Efficient communications in training large
//          scale neural networks, arXiv 1611.04255, section 3.2 (linear pipeline reduce)
// Needs    commutative op unless the root is rank 0. Any p >= 1, any n >= 0.
// Cost     (p-1) (alpha + n beta + n gamma); in B segments, enough of them under way, about
//          (p-2+B) (alpha + n/B beta), the larger of n beta and n gamma counting
// Scratch  2 n elements on ranks between others, n at the root; n less where the transport adds as
//          it receives.
// When     long messages in many segments and few ranks: then close to n beta, the bound.
// Order    from the root upwards, the last rank first: same bits in every run.
//
// p = 3, root 0; a digit is a contribution, * is final.
//                 rank 0    rank 1    rank 2
//   start         0         1         2
//   round 0       0         12
//   round 1       *
#include "coll/rejects.hpp"
#include "ir/algorithm.hpp"
#include "shapes/binomial.hpp"

namespace paceline {
namespace {

std::optional<Reason> rejects(const Problem& pb) {
  return unless_root_may_begin(pb);
}

void build(const Problem& pb, const Knobs&, Builder& b) {
  const int v = position_of(pb.rank, pb.root, pb.ranks);
  Segment sum = b.input();
  if (v + 1 < pb.ranks) {
    const Segment came = b.scratch(b.input());
    sum = v == 0 ? b.output() : b.scratch(b.input());
    b.recv(rank_at(v + 1, pb.root, pb.ranks), {came});
    b.reduce({b.input(), came}, sum);
  }
  if (v > 0) return b.send(rank_at(v - 1, pb.root, pb.ranks), {sum});
  b.copy(sum, b.output());
  b.finish(b.output());
}

Cost cost(const Problem& pb, const Knobs&) {
  return {.rounds = pb.ranks - 1.0, .volume = pb.ranks - 1.0, .reduced = pb.ranks - 1.0,
          .messages = pb.ranks - 1.0};
}

}  // namespace

extern const Algorithm reduce_chain{
    .collective = Collective::reduce, .name = "chain", .rejects = rejects, .build = build,
    .cost = cost};

}  // namespace paceline
