// Dissemination barrier: in round k each rank tells those r^k, 2 r^k, ... places on what it knows.
//
// Source   D. Hensgen, R. Finkel, U. Manber: Two algorithms for barrier synchronization.
//          Int. J. Parallel Program. 17(1):1-17, 1988. doi 10.1007/BF01379320
// Needs    nothing: any p >= 1.
// Cost     ceil(log2 p) alpha; with radix r, a knob, ceil(log_r p) alpha, where up to r - 1 signals
//          leave a rank at once: they are flags, and hold no port
// Scratch  none
// When     always.
// Order    moves no data.
//
// p = 3; digits are the ranks whose arrival is known.
//                 rank 0    rank 1    rank 2
//   start         0         1         2
//   round 0       20        01        12
//   round 1       120       201       012
#include <algorithm>

#include "ir/algorithm.hpp"

namespace paceline {
namespace {

int radix_of(const Knobs& knobs) { return knobs.radix > 1 ? knobs.radix : 2; }

void build(const Problem& pb, const Knobs& knobs, Builder& b) {
  const int p = pb.ranks, r = pb.rank, radix = radix_of(knobs);
  for (int unit = 1; unit < p; unit *= radix) {
    const int end = std::min(p, radix * unit);
    for (int d = unit; d < end; d += unit) b.signal((r + d) % p);
    for (int d = unit; d < end; d += unit) b.wait((r - d + p) % p);
  }
}

Cost cost(const Problem& pb, const Knobs& knobs) {
  int rounds = 0;
  for (int unit = 1; unit < pb.ranks; unit *= radix_of(knobs)) ++rounds;
  return {.rounds = double(rounds)};
}

}  // namespace

extern const Algorithm barrier_dissemination{
    .collective = Collective::barrier, .name = "dissemination", .build = build, .cost = cost,
    .takes = kTakesRadix};

}  // namespace paceline
