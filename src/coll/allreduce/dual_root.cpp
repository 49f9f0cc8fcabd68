// Dual-root allreduce: two binary trees sum B blocks on the way up while they spread them down.
//
// Source   J. L. Traeff: A doubly-pipelined, dual-root reduction-to-all algorithm and
//          implementation. arXiv 2109.12626, 2021
// Needs    nothing: any p >= 1, any n >= 0, operands stay in rank order; blocks may be empty.
// Cost     at most (4 (H+1) + 3 (B-1)) (alpha + n/B beta), H = height of a tree over p/2 ranks,
//          about log2 p - 1, and at most (2 H + 3 B) n/B gamma, when B divides n and messages go
//          out in their order; a seventh more where they overtake each other. B is the knob
//          `blocks`, 8 where it is left open.
// Scratch  at most 4 n/B elements.
// When     non-commutative operations on long messages; many ranks and blocks too short to be cut
//          in p.
// Order    rank order, by the two trees: same bits on every rank and in every run.
//
// p = 4, B = 1; a digit is a contribution, * is final. Ranks 1 and 3 are roots.
//                 rank 0    rank 1    rank 2    rank 3
//   start         0         1         2         3
//   step 0        0         01        2         23
//   step 1        0         *         2         *
//   step 2        *         *         *         *
#include "ir/algorithm.hpp"
#include "shapes/post_order.hpp"

namespace paceline {
namespace {

int cuts(const Problem&, const Knobs& knobs) { return knobs.blocks > 0 ? knobs.blocks : 8; }

RankRange lower(const Problem& pb) { return {0, (pb.ranks + 1) / 2 - 1}; }
RankRange upper(const Problem& pb) { return {lower(pb).last + 1, pb.ranks - 1}; }

// In step i a rank receives the partial sums of block i and sends the result of an earlier block,
// by as much earlier as it is deep.
void build(const Problem& pb, const Knobs& knobs, Builder& b) {
  if (pb.ranks == 1) {
    b.copy(b.input(), b.output());
    return b.finish(b.output());
  }
  const int blocks = cuts(pb, knobs);
  const bool low = pb.rank <= lower(pb).last;
  const PostOrderNode node = post_order_node(low ? lower(pb) : upper(pb), pb.rank);
  const int depth = node.depth, other = low ? upper(pb).last : lower(pb).last;
  const Segment came[2] = {b.scratch(b.input(0)), b.scratch(b.input(0))};
  const Segment sums[2] = {b.scratch(b.input(0)), b.scratch(b.input(0))};   // at a root
  const auto is_block = [&](int i) { return i >= 0 && i < blocks; };
  for (int i = 0; i < blocks + depth + 1; ++i) {
    std::vector<Segment> parts;
    for (int child : node.children) {
      if (is_block(i - depth - 1)) b.send(child, {b.output(i - depth - 1)});
      if (!is_block(i)) continue;
      parts.push_back(b.as(came[node.children.size() - 1 - parts.size()], b.input(i)));
      b.recv(child, {parts.back()});
    }
    Segment partial;
    if (is_block(i)) {
      partial = b.input(i);
      parts.push_back(partial);
      if (parts.size() > 1) {
        partial = node.parent < 0 ? b.as(sums[i % 2], b.input(i)) : b.output(i);
        b.reduce(parts, partial);
      }
    }
    if (node.parent >= 0) {
      if (is_block(i)) b.send(node.parent, {partial});
      if (is_block(i - depth)) b.recv(node.parent, {b.output(i - depth)});
    } else if (is_block(i)) {
      const Segment theirs = b.as(came[0], b.input(i));
      b.send(other, {partial});
      b.recv(other, {theirs});
      b.reduce(low ? std::vector{partial, theirs} : std::vector{theirs, partial}, b.output(i));
      b.finish(b.output(i));
    }
  }
}

Cost cost(const Problem& pb, const Knobs& knobs) {
  if (pb.ranks == 1) return {};
  const double blocks = cuts(pb, knobs), height = post_order_height(lower(pb));
  // Up to 4 ranks no rank has two children: a root hears one, and the other root, in every step.
  const double rounds = pb.ranks > 4 ? 4 * (height + 1) + 3 * (blocks - 1)
                                     : 2 * height + 1 + (height + 1) * (blocks - 1);
  return {.rounds = rounds, .volume = rounds / blocks,
          .reduced = (2 * height + 3 * blocks) / blocks};
}

}  // namespace

extern const Algorithm allreduce_dual_root{
    .collective = Collective::allreduce, .name = "dual_root", .cuts = cuts, .build = build,
    .cost = cost, .takes = kTakesBlocks};

}  // namespace paceline
