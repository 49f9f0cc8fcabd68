// Bruck alltoall, radix k: what goes d places on travels in one hop per digit of d to the base k.
//
// Source   J. Bruck, C.-T. Ho, S. Kipnis, E. Upfal, D. Weathersby: Efficient algorithms for
//          all-to-all communications in multiport message-passing systems. IEEE Trans. Parallel
//          Distrib. Syst. 8(11):1143-1156, 1997. doi 10.1109/71.642949
// Needs    equal units: ranks forward what others have for others. Any p >= 1, any counts.
// Cost     about (k-1) log_k p (alpha + n/k beta), n what one rank sends: exactly, one alpha for
//          every j k^i < p with 0 < j < k, and n/p beta for every digit but 0 of 1, ..., p - 1. The
//          radix k is a knob, 2 where it is left open.
// Scratch  less than n: a unit for every d of two digits or more that are not 0; (p-1)/p n more in
//          place, where every unit is staged before its block is received into.
// When     short units; a larger radix where starting messages costs little.
// Order    moves data only.
//
// p = 4, radix 2; XY is what rank X has for rank Y. Rank 0 forwards 32 to rank 2.
//                 rank 0            rank 1            rank 2            rank 3
//   start         00 01 02 03       10 11 12 13       20 21 22 23       30 31 32 33
//   1 place on    00 02 30 32       11 13 01 03       22 20 10 12       33 31 21 23
//   2 places on   00 10 20 30       01 11 21 31       02 12 22 32       03 13 23 33
#include <algorithm>

#include "ir/algorithm.hpp"

namespace paceline {
namespace {

int radix_of(const Problem& pb, const Knobs& knobs) {
  return std::max(2, std::min(knobs.radix, pb.ranks));
}

std::optional<Reason> rejects(const Problem& pb) {
  if (pb.uneven)
    return Reason{"units differ in length and a rank forwards units whose length it does not know",
                  "pairwise"};
  return {};
}

int hops(int offset, int radix) {
  int count = 0;
  for (; offset > 0; offset /= radix) count += offset % radix != 0;
  return count;
}

// Place of the unit for each offset: at first the own unit that is to go `offset` places on, at
// last the one that has come as far. Its final place and a spare one receive it in turn.
class Units {
 public:
  Units(const Problem& pb, Builder& b) : pb_(pb), b_(b) {
    now_.resize(static_cast<std::size_t>(pb.ranks));
    spare_.resize(now_.size());
    for (int d = 1; d < pb.ranks; ++d) {
      const Segment own = b.input((pb.rank + d) % pb.ranks);
      of(now_, d) = pb.in_place ? b.scratch(own) : own;
      b.copy(own, of(now_, d));
    }
  }

  // Unit d goes into the message; the one that comes in its stead, into a spare slot or home.
  void exchange(int d, int hops_left, std::vector<Segment>& message, std::vector<Segment>& into) {
    const Segment home = b_.output((pb_.rank - d + pb_.ranks) % pb_.ranks);
    Segment& spare = of(spare_, d);
    if (hops_left % 2 == 1 && spare.blocks == 0) spare = b_.scratch(home);
    message.push_back(of(now_, d));
    of(now_, d) = hops_left % 2 == 1 ? spare : home;
    into.push_back(of(now_, d));
  }

 private:
  static Segment& of(std::vector<Segment>& list, int d) {
    return list[static_cast<std::size_t>(d)];
  }

  const Problem& pb_;
  Builder& b_;
  std::vector<Segment> now_, spare_;
};

void build(const Problem& pb, const Knobs& knobs, Builder& b) {
  const int p = pb.ranks, r = pb.rank, radix = radix_of(pb, knobs);
  b.copy(b.input(r), b.output(r));
  Units units(pb, b);
  for (int unit = 1; unit < p; unit *= radix)
    for (int distance = unit; distance < std::min(p, radix * unit); distance += unit) {
      std::vector<Segment> message, into;
      for (int d = distance; d < p; ++d)
        if (d / unit % radix == distance / unit)
          units.exchange(d, hops(d / unit / radix, radix), message, into);
      b.send((r + distance) % p, message);
      b.recv((r - distance + p) % p, into);
    }
}

Cost cost(const Problem& pb, const Knobs& knobs) {
  const int p = pb.ranks, radix = radix_of(pb, knobs);
  int messages = 0, moved = 0;
  for (int unit = 1; unit < p; unit *= radix)
    messages += (std::min(p, radix * unit) - 1) / unit;
  for (int d = 1; d < p; ++d) moved += hops(d, radix);
  return {.rounds = double(messages), .volume = double(moved) / p, .reduced = 0};
}

}  // namespace

extern const Algorithm alltoall_bruck{
    .collective = Collective::alltoall, .name = "bruck", .rejects = rejects, .build = build,
    .cost = cost, .takes = kTakesRadix};

}  // namespace paceline
