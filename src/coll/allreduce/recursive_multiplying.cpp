// Recursive multiplying allreduce: as recursive doubling, but among `radix` ranks in every round.
//
// Source   M. Ruefenacht, M. Bull, S. Booth: Generalisation of recursive doubling for AllReduce.
//          Parallel Comput. 69:24-44, 2017. doi 10.1016/j.parco.2017.08.004. Here groups may
//          differ in size from round to round, and extra ranks fold onto a neighbour, so that
//          operands keep their order.
// Needs    nothing: any p >= 1, any n >= 0, operands stay in rank order.
// Cost     m (alpha + n beta + n gamma), where one message is sent at a time: m is the sum of
//          k_i - 1 over factors k_i <= k of p, its rounds. If p has no such factors, those of a
//          smaller number c, and f = ceil(p / c) - 1 more to fold the extra ranks in, and as often
//          alpha + n beta to tell them (at most: part of gamma is hidden); c is such that m + 2 f
//          is least. The radix k is a knob from 2 to 16, 4 where it is left open.
// Scratch  at most k + 1 times n elements.
// When     short messages where starting several costs little more than one: shared memory, or many
//          network ports.
// Order    rank order in consecutive groups: same bits on every rank and in every run.
//
// p = 5, radix 4; a digit is a contribution, * is final. Rank 1 is extra, rank 0 stands for it.
//                 rank 0    rank 1    rank 2    rank 3    rank 4
//   start         0         1         2         3         4
//   fold          01        1         2         3         4
//   round 0-2     *         1         *         *         *
//   tell          *         *         *         *         *
#include <algorithm>
#include <map>

#include "ir/algorithm.hpp"
#include "shapes/multicube.hpp"

namespace paceline {
namespace {

Multicube cube_of(const Problem& pb, const Knobs& knobs) {
  return {pb.ranks, knobs.radix > 1 ? std::min(knobs.radix, 16) : 4};
}

void build(const Problem& pb, const Knobs& knobs, Builder& b) {
  const Multicube cube = cube_of(pb, knobs);
  const int r = pb.rank, corner = cube.corner_of(r), leader = cube.leader(corner);
  if (r != leader) {
    b.send(leader, {b.input()});
    return b.recv(leader, {b.output()});
  }
  std::vector<int> extra;
  for (int rank = r + 1; rank < cube.leader(corner + 1); ++rank) extra.push_back(rank);
  std::vector<std::vector<int>> rounds{extra};   // the ranks it hears in each
  std::size_t most = extra.size();
  for (std::size_t dimension = 0; dimension < cube.sizes().size(); ++dimension) {
    rounds.push_back(cube.others(corner, dimension));
    most = std::max(most, rounds.back().size());
  }
  if (extra.empty()) rounds.erase(rounds.begin());

  Segment mine = b.input();
  const Segment beside[2] = {b.output(), b.scratch(b.output())};
  std::vector<Segment> spare;
  while (spare.size() < most) spare.push_back(b.scratch(b.output()));
  for (std::size_t k = 0; k < rounds.size(); ++k) {
    const std::vector<int>& others = rounds[k];
    std::map<int, Segment> sources{{r, mine}};   // in rank order
    for (std::size_t i = 0; i < others.size(); ++i) {
      const std::size_t back = others.size() - 1 - i;   // the i-th before it sends to it now
      if (k > 0 || extra.empty()) b.send(others[i], {mine});
      sources[others[back]] = spare[back];   // the last one in the first slot, which fuse() prefers
      b.recv(others[back], {sources[others[back]]});
    }
    std::vector<Segment> ordered;
    for (const auto& source : sources) ordered.push_back(source.second);
    mine = beside[(rounds.size() - 1 - k) % 2];
    b.reduce(ordered, mine);
  }
  b.copy(mine, b.output());
  b.finish(b.output());
  for (int rank : extra) b.send(rank, {b.output()});
}

Cost cost(const Problem& pb, const Knobs& knobs) {
  const Multicube cube = cube_of(pb, knobs);
  const double fold = cube.most() - 1;
  double others = 0;
  for (int size : cube.sizes()) others += size - 1;
  return {.rounds = others + 2 * fold, .volume = others + 2 * fold, .reduced = others + fold,
          .messages = others * cube.corners() + 2.0 * (pb.ranks - cube.corners())};
}

}  // namespace

extern const Algorithm allreduce_recursive_multiplying{
    .collective = Collective::allreduce, .name = "recursive_multiplying", .build = build,
    .cost = cost, .takes = kTakesRadix};

}  // namespace paceline
