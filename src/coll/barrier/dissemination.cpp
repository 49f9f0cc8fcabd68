// Dissemination barrier: in round k everybody tells the rank 2^k places on all that it has heard.
//
// Source   D. Hensgen, R. Finkel, U. Manber: Two algorithms for barrier synchronization.
//          Int. J. Parallel Program. 17(1):1-17, 1988. doi 10.1007/BF01379320
// Needs    nothing: any p >= 1.
// Cost     ceil(log2 p) alpha
// Scratch  none
// When     always.
// Order    moves no data.
//
// p = 3; digits are the ranks whose arrival is known.
//                 rank 0    rank 1    rank 2
//   start         0         1         2
//   round 0       20        01        12
//   round 1       120       201       012
#include "coll/registry.hpp"
#include "shapes/binomial.hpp"

namespace paceline {
namespace {

int cuts(const Problem&, const Knobs&) { return 1; }

void build(const Problem& pb, const Knobs&, Builder& b) {
  for (int distance = 1; distance < pb.ranks; distance *= 2) {
    b.signal((pb.rank + distance) % pb.ranks);
    b.wait((pb.rank - distance + pb.ranks) % pb.ranks);
  }
}

Cost cost(const Problem& pb, const Knobs&) {
  return {.rounds = double(ceil_log2(pb.ranks)), .volume = 0, .reduced = 0};
}

}  // namespace

const Algorithm barrier_dissemination{
    Collective::barrier, "dissemination", serves_all, cuts, build, cost};

}  // namespace paceline
