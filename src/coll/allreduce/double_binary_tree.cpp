// Double binary tree allreduce: each half of the message goes up and down a tree of its own.
//
// Source   P. Sanders, J. Speck, J. L. Traeff: Two-tree algorithms for full bandwidth broadcast,
//          reduction and scan. Parallel Comput. 35(12):581-594, 2009; with trees as in NCCL.
// Needs    commutative op. Any p >= 1, any n >= 0; blocks may be empty.
// Cost     at most (2 B + 4 q) (alpha + n/B beta) + (B + 2 q) n/B gamma, q = ceil(log2 p), when B
//          divides n; between two ranks B, B and B/2. B is the knob `blocks`, made even, 8 where it
//          is left open.
// Scratch  at most 6 n/B elements: two blocks for each child.
// When     long messages and many ranks: close to 2 n beta after log2 p steps instead of p.
// Order    of each half by the positions in its tree: same bits on every rank and in every run for
//          fixed p; other bits for other p.
//
// p = 3, B = 2, blocks A B; a digit is a contribution, * is final. A goes up from rank 1 to 2 to 0,
// B from rank 2 to 0 to 1.
//                 rank 0         rank 1         rank 2
//   start         A0  B0         A1  B1         A2  B2
//   slot 0        A0  B02        A1  B1         A12 B2
//   slot 1        A*  B02        A1  B*         A12 B2
//   slot 2        A*  B*         A1  B*         A*  B2
//   slot 3        A*  B*         A*  B*         A*  B*
#include "coll/rejects.hpp"
#include "ir/algorithm.hpp"
#include "shapes/double_tree.hpp"

namespace paceline {
namespace {

// Number of blocks of each tree.
int blocks_of(const Knobs& knobs) { return knobs.blocks > 0 ? (knobs.blocks + 1) / 2 : 4; }

int cuts(const Problem&, const Knobs& knobs) { return 2 * blocks_of(knobs); }

std::optional<Reason> rejects(const Problem& pb) {
  return unless_commutative(pb, "the trees add in two orders", "dual_root");
}

// One tree's part. Block i leaves a rank at depth d for its parent in slot i + height - d, and for
// its children, when it is complete, in slot i + height + d: both ends of every message know when.
class Half {
 public:
  Half(const Problem& pb, const Knobs& knobs, int tree, Builder& b)
      : b_(b), node_(DoubleTree{pb.ranks}.node(tree, pb.rank)),
        height_(DoubleTree{pb.ranks}.height()), blocks_(blocks_of(knobs)), first_(tree * blocks_) {
    for (std::size_t i = 0; i < 2 * node_.children.size(); ++i)
      spare_.push_back(b.scratch(b.input(0)));
  }

  void slot(int now) {
    const int up = now - height_ + node_.depth, down = now - height_ - node_.depth;
    if (has(down))
      for (int child : node_.children) b_.send(child, {b_.output(first_ + down)});
    if (has(up) && node_.parent >= 0)
      b_.send(node_.parent,
              {node_.children.empty() ? b_.input(first_ + up) : b_.output(first_ + up)});
    if (has(up + 1) && !node_.children.empty()) add(up + 1);
    if (has(down + 1) && node_.parent >= 0) b_.recv(node_.parent, {b_.output(first_ + down + 1)});
  }

 private:
  bool has(int block) const { return block >= 0 && block < blocks_; }

  void add(int block) {
    const Segment mine = b_.input(first_ + block), sum = b_.output(first_ + block);
    std::vector<Segment> parts;
    for (std::size_t i = 0; i < node_.children.size(); ++i) {
      parts.push_back(b_.as(spare_[2 * i + std::size_t(block) % 2], mine));
      b_.recv(node_.children[i], {parts.back()});
    }
    parts.insert(parts.begin() + std::ptrdiff_t(node_.before), mine);
    b_.reduce(parts, sum);
    if (node_.parent < 0) b_.finish(sum);
  }

  Builder& b_;
  DoubleTree::Node node_;
  int height_, blocks_, first_;
  std::vector<Segment> spare_;
};

void build(const Problem& pb, const Knobs& knobs, Builder& b) {
  if (pb.ranks == 1) {
    b.copy(b.input(), b.output());
    return b.finish(b.output());
  }
  Half halves[] = {Half(pb, knobs, 0, b), Half(pb, knobs, 1, b)};
  const int slots = blocks_of(knobs) + 2 * DoubleTree{pb.ranks}.height();
  for (int now = 0; now < slots; ++now)
    for (Half& half : halves) half.slot(now);
}

Cost cost(const Problem& pb, const Knobs& knobs) {
  if (pb.ranks == 1) return {};
  const double blocks = cuts(pb, knobs), height = DoubleTree{pb.ranks}.height();
  if (pb.ranks == 2) return {.rounds = blocks, .volume = 1, .reduced = 0.5};
  const double rounds = 2 * blocks + 4 * height;
  return {.rounds = rounds, .volume = rounds / blocks, .reduced = (blocks + 2 * height) / blocks};
}

}  // namespace

extern const Algorithm allreduce_double_binary_tree{
    .collective = Collective::allreduce, .name = "double_binary_tree", .rejects = rejects,
    .cuts = cuts, .build = build, .cost = cost, .takes = kTakesBlocks};

}  // namespace paceline
