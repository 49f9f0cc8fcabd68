#include "tune/table.hpp"

#include "coll/algorithms.hpp"

namespace paceline {
namespace {

using enum CutInto;

constexpr std::size_t kKiB = 1u << 10, kMiB = 1u << 20;
constexpr std::size_t kAny = Row::kAnyBytes;
constexpr int kAnyRanks = Row::kAnyRanks;

constexpr const char* kSymmetric = "symmetric memory: every rank works on all of it";
constexpr const char* kSliced = "one node: each sums a slice";
constexpr const char* kByArrival = "ranks of the node that come late: in order of arrival";
constexpr const char* kHierarchical = "short, several ranks on a node: few messages across";
constexpr const char* kHierarchicalMedium = "medium, several ranks on a node: few messages across";
constexpr const char* kHierarchicalChain = "long, several ranks on a node: from node to node";
constexpr const char* kMultilane = "long, several ranks on a node: least traffic across";
constexpr const char* kMultilaneInOrder = "long, several ranks on a node, operands in order";

struct Sizes {
  std::size_t from = 0, below = kAny;   // bytes of the message
};
struct Ranks {
  int from = 2, to = kAnyRanks;
};

constexpr Row in_memory(const Algorithm& a, Sizes sizes, Ranks ranks, const char* why,
                        double room = 0, bool flows = false) {
  Row row{&a, why};
  row.from_bytes = sizes.from, row.below_bytes = sizes.below;
  row.from_ranks = ranks.from, row.to_ranks = ranks.to;
  row.room = room, row.flows = flows;
  return row;
}

// Every rank reaches all buffers: only very short messages are faster when sent.
constexpr Row symmetric(const Algorithm& a) { return in_memory(a, {2 * kKiB}, {}, kSymmetric); }

// Ranks of one node read each other's staging buffers ("stages") instead of sending. A message
// passes in blocks that stay in the cache with their copies, as long as the stages have room.
constexpr Row staged(const Algorithm& a, Sizes sizes, Ranks ranks, double room, const char* why) {
  return in_memory(a, sizes, ranks, why, room);
}
constexpr Row flowing(const Algorithm& a, double room, const char* why) {
  return in_memory(a, {}, {}, why, room, true);
}

// Ranks of a node came late before. Shorter messages take hardly longer than it takes to see which
// ranks are late; of two ranks one is always late. If the lengths do not hold, the trial shows it,
// and calls go as usual (arrival/entries.hpp).
constexpr Row by_arrival(const Algorithm& a, Sizes sizes) {
  return in_memory(a, sizes, {3}, kByArrival);
}

constexpr Row messages(const Algorithm& a, CutInto cut, int hops, unsigned traits, const char* why,
                       Knobs knobs = {}) {
  return {&a, why, cut, hops, traits, knobs};
}

// Lengths in memory were measured on 2 cores: symmetric memory, stages, single copies on an Intel
// Xeon (docs/design/0014-shared-buffers.md, 0019-straight.md, 0023-attached.md), arrivals on an AMD
// EPYC with 4 ranks (0044-arrival-in-the-node.md). The first rows for messages are the simplest and
// need the least memory; a later one must be faster by a margin.
constinit const Row kRows[] = {
    symmetric(allreduce_symmetric),
    staged(allreduce_two_shot, {512 * kKiB + 1}, {2, 2}, 2, kSliced),
    staged(allreduce_two_shot, {16 * kKiB}, {3}, 3, kSliced),
    staged(allreduce_one_shot, {}, {}, 1, "one node, short: one signal"),
    staged(allreduce_two_shot, {}, {2, 2}, 2, kSliced),   // where stages have little room
    by_arrival(allreduce_arrival_leader, {16 * kKiB, 64 * kKiB}),
    by_arrival(allreduce_arrival_chain, {64 * kKiB}),
    messages(allreduce_recursive_doubling, whole, 0, 0, "short: fewest rounds"),
    messages(allreduce_recursive_multiplying, whole, 0, 0, "short: fewest rounds, in threes",
             {3, 0}),
    messages(allreduce_gather, whole, 0, 0, "tiny, p no power of two: fewest rounds"),
    messages(allreduce_binomial, whole, 0, lean,
             "short, many ranks in a node: few messages across"),
    messages(allreduce_ring, sums, 0, lean, "long: least traffic, between neighbours"),
    messages(allreduce_rabenseifner, sums, 0, 0, "medium: least traffic in few rounds"),
    messages(allreduce_circulant, sums, 0, strict, "medium: the same, p no power of two"),
    messages(allreduce_direct, sums, 0, 0, "long, operands in order: least traffic"),
    messages(allreduce_bruck, sums, 0, 0, "medium, operands in order: few rounds"),
    messages(allreduce_dual_root, blocks, 3, lean, "medium: a pipe of trees"),
    messages(allreduce_double_binary_tree, blocks, 4, lean, "long: a pipe of two trees"),
    messages(allreduce_hierarchical, whole, 0, 0, kHierarchical),
    messages(allreduce_multilane, segments, 0, 0, kMultilane),
    messages(allreduce_multilane_direct, segments, 0, 0, kMultilaneInOrder),
    messages(allreduce_hierarchical_rsa, whole, 0, 0, kHierarchicalMedium),
    messages(allreduce_chain, segments, 2, lean | named, "a pipe to the first rank and back"),

    symmetric(broadcast_symmetric),
    in_memory(broadcast_single_copy, {kMiB}, {2, 2}, "two of a node, long: copied once"),
    flowing(broadcast_staged, 4, "one node: all copy from the root"),
    messages(broadcast_binomial, whole, 0, lean, "short: fewest rounds"),
    messages(broadcast_scatter_allgather, whole, 0, lean, "medium: every rank sends its share"),
    messages(broadcast_scatter_circulant, whole, 0, strict, "medium: the same in fewer rounds"),
    messages(broadcast_circulant, blocks, 1, strict, "long: a pipe of few hops"),
    messages(broadcast_chain, segments, 1, lean, "long: a pipe from neighbour to neighbour"),
    messages(broadcast_hierarchical, whole, 0, 0, kHierarchical),
    messages(broadcast_hierarchical_chain, segments, 1, 0, kHierarchicalChain),

    staged(reduce_two_shot, {64 * kKiB}, {4}, 3, "one node, long: each sums a slice"),
    flowing(reduce_staged, 4, "one node: the root sums"),
    by_arrival(reduce_arrival_chain, {16 * kKiB}),
    messages(reduce_k_nomial, whole, 0, lean, "short: fewest rounds, in threes", {3, 0}),
    messages(reduce_binomial, whole, 0, lean, "short: fewest rounds"),
    messages(reduce_scatter_gather, sums, 0, strict, "medium: every rank sums its share"),
    messages(reduce_circulant, blocks, 1, strict, "long: a pipe of few hops"),
    messages(reduce_chain, segments, 1, lean, "long: a pipe from neighbour to neighbour"),
    messages(reduce_linear, whole, 0, lean, "operands in order, and the root is not rank 0"),
    messages(reduce_gather, whole, 0, 0, "short, operands in order: fewest rounds"),
    messages(reduce_bruck, sums, 0, 0, "medium, operands in order: few rounds"),
    messages(reduce_direct, sums, 0, 0, "long, operands in order: least traffic"),
    messages(reduce_hierarchical, whole, 0, 0, kHierarchical),
    messages(reduce_hierarchical_chain, segments, 1, 0, kHierarchicalChain),

    symmetric(reduce_scatter_symmetric),
    staged(reduce_scatter_staged, {}, {}, 2, "one node: each sums its own"),
    messages(reduce_scatter_ring, segments, 0, lean, "long: least traffic, between neighbours"),
    messages(reduce_scatter_recursive_halving, segments, 0, 0, "least traffic in fewest rounds"),
    messages(reduce_scatter_circulant, segments, 0, strict, "least traffic in fewest rounds"),
    messages(reduce_scatter_direct, segments, 0, 0, "operands in order: least traffic"),
    messages(reduce_scatter_bruck, segments, 0, 0, "operands in order: few rounds"),
    messages(reduce_scatter_hierarchical, whole, 0, 0, kHierarchical),
    messages(reduce_scatter_multilane, segments, 0, 0, kMultilane),

    symmetric(allgather_symmetric),
    staged(allgather_staged, {}, {}, 2, "one node: each copies what is shown"),
    messages(allgather_ring, segments, 0, lean, "long: least traffic, between neighbours"),
    messages(allgather_circulant, whole, 0, 0, "least traffic in fewest rounds"),
    // Nearly the same where messages are long; measured, multilane is ahead there (0045).
    messages(allgather_multilane, segments, 0, 0, kMultilane),
    messages(allgather_hierarchical, whole, 0, 0, kHierarchical),

    symmetric(alltoall_symmetric),
    staged(alltoall_staged, {}, {}, 2, "one node: each takes its own"),
    messages(alltoall_pairwise, whole, 0, 0, "long: least traffic"),
    messages(alltoall_bruck, whole, 0, 0, "short: fewest rounds", {2, 0}),
    messages(alltoall_bruck, whole, 0, 0, "short: few rounds, less traffic", {4, 0}),

    flowing(gather_staged, 4, "one node: the root copies what is shown"),
    messages(gather_linear, whole, 0, lean, "long: no detour"),
    messages(gather_binomial, whole, 0, lean, "short: fewest rounds"),
    flowing(scatter_staged, 4, "one node: each copies its own"),
    messages(scatter_linear, whole, 0, lean, "long: no detour"),
    messages(scatter_binomial, whole, 0, lean, "short: fewest rounds"),

    staged(barrier_staged, {}, {}, 0, "one node: one signal"),
    messages(barrier_dissemination, whole, 0, 0, "fewest rounds"),
};

}  // namespace

std::span<const Row> rows() { return kRows; }

}  // namespace paceline
