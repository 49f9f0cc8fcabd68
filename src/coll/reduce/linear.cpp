// Linear reduce: all ranks send to the root, which adds one after the other in rank order.
//
// Source   elementary; MPI: A Message-Passing Interface Standard 4.1, section 6.9.1 recommends the
//          order of ranks.
// Needs    nothing: any p >= 1, any n >= 0, any root, operands stay in rank order.
// Cost     (p-1) (alpha + n beta + n gamma)
// Scratch  n elements at the root, 2 n where it is not rank 0; n less where the transport adds as
//          it receives.
// When     two or three ranks; non-commutative operations with a root other than rank 0.
// Order    rank order from left to right, whatever the root: same bits in every run.
//
// p = 3, root 1; a digit is a contribution, * is final.
//                 rank 0    rank 1    rank 2
//   start         0         1         2
//   round 0       0         0  1      2
//   round 1       0         *         2
#include "ir/algorithm.hpp"

namespace paceline {
namespace {

// Sums operands before the root's own in scratch, since its own may lie where the sum goes.
void build(const Problem& pb, const Knobs&, Builder& b) {
  if (pb.rank != pb.root) return b.send(pb.root, {b.input()});
  const Segment came = b.scratch(b.input()), before = b.scratch(b.input());
  std::vector<Segment> open;   // what is not added yet; a sum of all before it comes first
  for (int from = 0; from < pb.ranks; ++from) {
    if (from == pb.root) {
      open.push_back(b.input());
    } else if (from == 0) {
      b.recv(from, {before});
      open = {before};
    } else {
      const Segment sum = from > pb.root ? b.output() : before;
      b.recv(from, {came});
      open.push_back(came);
      b.reduce(open, sum);
      open = {sum};
    }
  }
  if (open.size() > 1) b.reduce(open, b.output());
  else b.copy(open.front(), b.output());
  b.finish(b.output());
}

Cost cost(const Problem& pb, const Knobs&) {
  return {.rounds = pb.ranks - 1.0, .volume = pb.ranks - 1.0, .reduced = pb.ranks - 1.0,
          .messages = pb.ranks - 1.0};
}

}  // namespace

extern const Algorithm reduce_linear{
    .collective = Collective::reduce, .name = "linear", .build = build, .cost = cost};

}  // namespace paceline
