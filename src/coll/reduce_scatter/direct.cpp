// Direct reduce-scatter: every unit goes straight to its owner, which adds all of them at once.
//
// Source   A. Grama, G. Karypis, V. Kumar, A. Gupta: Introduction to Parallel Computing, 2nd ed.,
//          Addison-Wesley 2003, section 4.5 (all-to-all personalized). In training also known as
//          transpose or all-to-all based reduction.
// Needs    nothing: any p >= 1, any counts, operands stay in rank order.
// Cost     (p-1) (alpha + n/p beta + n/p gamma) (exact when the units are equal; beyond 16 ranks a
//          part of gamma is hidden)
// Scratch  p of the longest units: what has come is kept until all is there.
// When     non-commutative operations; 16-bit floats, which are rounded once up to 16 ranks and
//          twice up to 256, instead of once a rank; few ranks, of which any may come late.
// Order    rank order from left to right; beyond 16 ranks first in equal groups of at most 16: same
//          bits in every run, whatever comes first.
//
// p = 3, blocks A B C; a digit is a contribution, * is final. Received data is in scratch.
//                 rank 0            rank 1            rank 2
//   start         A0   B0   C0      A1   B1   C1      A2   B2   C2
//   round 0       A0 A2             B0 B1             C1 C2
//   round 1       A*                B*                C*
#include "coll/sums.hpp"
#include "ir/algorithm.hpp"

namespace paceline {
namespace {

void build(const Problem& pb, const Knobs&, Builder& b) {
  const int p = pb.ranks, r = pb.rank;
  std::vector<Segment> all(static_cast<std::size_t>(p), b.input(r));   // by rank
  const auto of = [&](int rank) -> Segment& { return all[static_cast<std::size_t>(rank)]; };
  // The last to come has the first slot: fuse() then adds it as it comes, and delays no other.
  for (int k = p - 1; k > 0; --k) of((r - k + p) % p) = b.scratch(b.input(r));
  for (int k = 1; k < p; ++k) {
    const int to = (r + k) % p, from = (r - k + p) % p;
    b.send(to, {b.input(to)});
    b.recv(from, {of(from)});
  }
  if (p > 1) sum_in_groups(b, all, b.output(r));
  else b.copy(b.input(r), b.output(r));
  b.finish(b.output(r));
}

Cost cost(const Problem& pb, const Knobs&) {
  const double share = double(pb.ranks - 1) / pb.ranks;
  return {.rounds = pb.ranks - 1.0, .volume = share, .reduced = share};
}

}  // namespace

extern const Algorithm reduce_scatter_direct{
    .collective = Collective::reduce_scatter, .name = "direct", .build = build, .cost = cost,
    .bits = Bits::by_rank};

}  // namespace paceline
