// Allreduce on k rings: each ring has its own stride and its own share of the message.
//
// Source   P. Patarasuk, X. Yuan: Bandwidth optimal all-reduce algorithms for clusters of
//          workstations. J. Parallel Distrib. Comput. 69(2):117-124, 2009.
//          doi 10.1016/j.jpdc.2008.09.002; several rings as in NCCL.
// Needs    commutative op. Any p >= 1, any n >= 0; blocks may be empty.
// Cost     2 c (p-1) alpha + 2 (p-1)/p n beta + (p-1)/p n gamma where one message is sent at a
//          time, a c-th of beta where each ring has its own links (at most, when c p divides n: one
//          ring adds while another sends). The number c of rings is the knob `blocks`, 2 where it
//          is left open, and never more than there are strides without a common divisor with p.
// Scratch  at most 4 ceil(n/p) elements.
// When     long messages over several links or ports of each rank.
// Order    as in reduce_scatter/ring, in the order of the ring: same bits on every rank and in
//          every run for fixed p, n and c.
//
// p = 3, two rings: 0 1 2 and 0 2 1, blocks A B C and D E F; a digit is a contribution, * is final.
//                 rank 0            rank 1            rank 2
//   start         A0 .. F0          A1 .. F1          A2 .. F2
//   round 0       B02  E01          C01  D12          A12  F02
//   round 1       A*  D*            B*  F*            C*  E*
//   round 3       A* .. F*          A* .. F*          A* .. F*
#include <numeric>

#include "coll/registry.hpp"
#include "coll/rejects.hpp"
#include "ir/compose.hpp"

namespace paceline {
namespace {

// Strides from 1 on: as many as there are rings.
std::vector<int> strides(const Problem& pb, const Knobs& knobs) {
  const std::size_t wanted = knobs.blocks > 0 ? static_cast<std::size_t>(knobs.blocks) : 2;
  std::vector<int> out{1};
  for (int s = pb.ranks - 1; s > 1 && out.size() < wanted; --s)
    if (std::gcd(s, pb.ranks) == 1) out.push_back(s);
  return out;
}

int cuts(const Problem& pb, const Knobs& knobs) {
  return pb.ranks * static_cast<int>(strides(pb, knobs).size());
}

std::optional<Reason> rejects(const Problem& pb) {
  return unless_commutative(pb, "a ring sums in ring order", "direct");
}

void build(const Problem& pb, const Knobs& knobs, Builder& b) {
  const int p = pb.ranks;
  std::vector<Phase> phases;
  int first = 0;
  for (int stride : strides(pb, knobs)) {
    std::vector<int> ring;
    for (int i = 0; i < p; ++i)
      ring.push_back(static_cast<int>(std::int64_t{i} * stride % p));
    const Region input = region_of(b.input(first, p)), output = region_of(b.output(first, p));
    phases.push_back({.algorithm = &reduce_scatter_ring, .members = ring,
                      .input = input, .output = output, .completes = true});
    phases.push_back({.algorithm = &allgather_ring, .members = ring,
                      .input = output, .output = output});
    first += p;
  }
  compose(b, pb.rank, phases);
}

Cost cost(const Problem& pb, const Knobs& knobs) {
  const double share = double(pb.ranks - 1) / pb.ranks;
  const double rings = double(strides(pb, knobs).size());
  return {.rounds = 2 * rings * (pb.ranks - 1), .volume = 2 * share, .reduced = share};
}

}  // namespace

const Algorithm allreduce_rings{
    Collective::allreduce, "rings", rejects, cuts, build, cost, kTakesBlocks};

}  // namespace paceline
