// Reduce-scatter by leaders: nodes sum at their leaders, and leaders add up and hand out.
//
// Source   T. Kielmann, R. F. H. Hofman, H. E. Bal, A. Plaat, R. A. F. Bhoedjang: MagPIe: MPI's
//          collective communication operations for clustered wide area systems. PPoPP 1999,
//          131-140. doi 10.1145/301104.301116
// Needs    k nodes with g ranks each; operands that must stay in rank order need ranks of a node
//          that are neighbours. Any counts, zero among them.
// Cost     across as allreduce/recursive_doubling of k ranks, n the whole input, and inside a node
//          ceil(log2 g) (alpha + n beta + n gamma) to sum and (g-1) alpha + (g-1)/p n beta to tell
//          (exact when the units are equal)
// Scratch  at most 7 n elements.
// When     short messages, several ranks on each of several nodes: leaders sum more than they need,
//          in fewest rounds.
// Order    rank order inside a node, then the nodes in the order of their first ranks: same bits in
//          every run for the same nodes.
//
// p = 4, nodes 01 and 23, units A B C D; a digit is a contribution, * is final.
//                 rank 0            rank 1            rank 2            rank 3
//   start         A0   B0   C0   D0 A1   B1   C1   D1 A2   B2   C2   D2 A3   B3   C3   D3
//   sum           A01  B01  C01  D01                  A23  B23  C23  D23
//   across        A*   B*   C*   D*                   A*   B*   C*   D*
//   tell          A*                     B*                     C*                     D*
#include "coll/leaders.hpp"
#include "coll/registry.hpp"

namespace paceline {
namespace {

int cuts(const Problem&, const Knobs&) { return 1; }

void build(const Problem& pb, const Knobs&, Builder& b) {
  const Lanes lanes(pb);
  const Region input = region_of(b.input());
  const int leader = lanes.rank_of(lanes.node(), 0);
  const Segment room = pb.rank == leader ? b.scratch(b.input()) : b.input();
  const Region sums = pb.rank == leader ? region_in(room, input) : input;
  std::vector<Phase> phases{{.algorithm = &reduce_binomial, .members = lanes.mates(),
                             .input = input, .output = sums}};
  if (pb.rank == leader)
    phases.push_back({.algorithm = &allreduce_recursive_doubling, .members = lanes.twins(),
                      .input = sums, .output = sums, .completes = true});
  compose(b, pb.rank, phases);
  if (pb.rank != leader) return b.recv(leader, {b.output(pb.rank)});
  for (int mate : lanes.mates())
    if (mate != leader) b.send(mate, {b.part(room, mate, 1)});
  b.copy(b.part(room, leader, 1), b.output(leader));
}

Cost cost(const Problem& pb, const Knobs&) {
  const Problem mates = among_mates(pb);
  const double g = mates.ranks;
  return cost_of(reduce_binomial.cost(mates, {}),
                 allreduce_recursive_doubling.cost(among_leaders(pb), {}),
                 {.rounds = g - 1, .volume = (g - 1) / pb.ranks, .reduced = 0});
}

}  // namespace

const Algorithm reduce_scatter_leaders{.collective = Collective::reduce_scatter,
                                       .name = "leaders", .rejects = rejects_scattered_nodes,
                                       .cuts = cuts, .build = build, .cost = cost,
                                       .grouped = true};

}  // namespace paceline
