// Sorted chain reduce: sums run along the ranks as they are expected to enter, and end at the root.
//
// Source   J. Proficz: Improving all-reduce collective operations for imbalanced process arrival
//          patterns. J. Supercomput. 74:3071-3092, 2018. doi 10.1007/s11227-018-2356-z
// Needs    commutative op, late ranks known to all; where sums are stable the operation is exact.
//          Any p >= 1, any n >= 0, any root.
// Cost     in B blocks (p-2+B) (alpha + n/B beta + n/B gamma); after the last of k late ranks
//          (k+B) (alpha + n/B beta)
// Scratch  2 n elements on ranks between others, n at the root; n less where the transport adds as
//          it receives.
// When     long messages in many blocks, late ranks one by one or together: n beta is left to do.
// Order    early ranks in rank order, then late ones, then the root: same bits in every run in
//          which the same ranks are predicted late in the same order.
//
// p = 3, root 0, rank 1 is late; a digit is a contribution, * is final.
//                 rank 0    rank 1    rank 2
//   start         0                   2
//   it enters     0         1         2
//   round 0       0         12
//   round 1       *
#include "coll/late.hpp"
#include "coll/rejects.hpp"
#include "ir/algorithm.hpp"

namespace paceline {
namespace {

constexpr int kBlocks = 8;

int cuts(const Problem&, const Knobs& knobs) { return knobs.blocks > 0 ? knobs.blocks : kBlocks; }

std::optional<Reason> rejects(const Problem& pb) {
  return unless_commutative(pb, "operands are added as their ranks enter", "tail_direct");
}

void build(const Problem& pb, const Knobs& knobs, Builder& b) {
  std::vector<int> up = Sides(pb).in_order();
  std::erase(up, pb.root);
  up.push_back(pb.root);
  const auto at = std::size_t(std::find(up.begin(), up.end(), pb.rank) - up.begin());
  const bool is_root = pb.rank == pb.root;
  for (int block = 0; block < cuts(pb, knobs); ++block) {
    const Segment mine = b.input(block);
    const Segment sum = is_root ? b.output(block) : at > 0 ? b.scratch(mine) : mine;
    if (at > 0) {
      const Segment came = b.scratch(mine);
      b.recv(up[at - 1], {came});
      b.reduce({came, mine}, sum);
    }
    if (!is_root) b.send(up[at + 1], {sum});
    else if (at == 0) b.copy(mine, sum);
    if (is_root) b.finish(sum);
  }
}

Cost cost(const Problem& pb, const Knobs& knobs) {
  const double hops = pb.ranks - 1, blocks = cuts(pb, knobs);
  if (pb.ranks == 1) return {};
  return {.rounds = hops + blocks - 1, .volume = (hops + blocks - 1) / blocks,
          .reduced = (hops + blocks - 1) / blocks, .messages = hops * blocks};
}

}  // namespace

extern const Algorithm reduce_sorted_chain{
    .collective = Collective::reduce, .name = "sorted_chain", .rejects = rejects, .cuts = cuts,
    .build = build, .cost = cost, .takes = kTakesBlocks, .expects_late = true,
    .bits_follow_late = true};

}  // namespace paceline
