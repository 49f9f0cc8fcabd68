#include "tune/choose.hpp"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "coll/registry.hpp"
#include "coll/shared.hpp"
#include "tune/estimate.hpp"
#include "tune/staging.hpp"
#include "tune/late.hpp"

namespace paceline {
namespace {

constexpr int kWindow = 6;         // segments under way: more keep no port busier (see window_of)
constexpr int kMostAsked = 65536, kMostRadix = 16, kMostBlocks = 4096;   // that a caller asks for

using enum Collective;
using enum CutInto;

constexpr const char* kHierarchical = "short, several ranks on a node: few messages across";
constexpr const char* kHierarchicalMedium = "medium, several ranks on a node: few messages across";
constexpr const char* kHierarchicalChain = "long, several ranks on a node: from node to node";
constexpr const char* kMultilane = "long, several ranks on a node: least traffic across";
constexpr const char* kMultilaneInOrder = "long, several ranks on a node, operands in order";

// Of the rows of a collective whose algorithm serves the problem, the one with the least estimate
// is taken; the first ones are the simplest and need the least memory. Columns: collective,
// algorithm, what is cut, hops of a pipe, traits, why, knobs (estimate.hpp).
constexpr Candidate kCandidates[] = {
    {allreduce, "recursive_doubling", whole, 0, 0, "short: fewest rounds"},
    {allreduce, "recursive_multiplying", whole, 0, 0, "short: fewest rounds, in threes", {3, 0}},
    {allreduce, "gather", whole, 0, 0, "tiny, p no power of two: fewest rounds"},
    {allreduce, "binomial", whole, 0, lean, "short, many ranks in a node: few messages across"},
    {allreduce, "ring", sums, 0, lean, "long: least traffic, between neighbours"},
    {allreduce, "rabenseifner", sums, 0, 0, "medium: least traffic in few rounds"},
    {allreduce, "circulant", sums, 0, strict, "medium: the same, p no power of two"},
    {allreduce, "direct", sums, 0, 0, "long, operands in order: least traffic"},
    {allreduce, "bruck", sums, 0, 0, "medium, operands in order: few rounds"},
    {allreduce, "dual_root", blocks, 3, lean, "medium: a pipe of trees"},
    {allreduce, "double_binary_tree", blocks, 4, lean, "long: a pipe of two trees"},
    {allreduce, "hierarchical", whole, 0, on_nodes, kHierarchical},
    {allreduce, "multilane", segments, 0, on_nodes, kMultilane},
    {allreduce, "multilane_direct", segments, 0, on_nodes, kMultilaneInOrder},
    {allreduce, "hierarchical_rsa", segments, 0, on_nodes, kHierarchicalMedium},
    {allreduce, "chain", segments, 2, lean | named, "a pipe to the first rank and back"},
    {broadcast, "binomial", whole, 0, lean, "short: fewest rounds"},
    {broadcast, "scatter_allgather", whole, 0, lean, "medium: every rank sends its share"},
    {broadcast, "scatter_circulant", whole, 0, strict, "medium: the same in fewer rounds"},
    {broadcast, "circulant", blocks, 1, strict, "long: a pipe of few hops"},
    {broadcast, "chain", segments, 1, lean, "long: a pipe from neighbour to neighbour"},
    {broadcast, "hierarchical", whole, 0, on_nodes, kHierarchical},
    {broadcast, "hierarchical_chain", segments, 1, on_nodes, kHierarchicalChain},
    {reduce, "k_nomial", whole, 0, lean, "short: fewest rounds, in threes", {3, 0}},
    {reduce, "binomial", whole, 0, lean, "short: fewest rounds"},
    {reduce, "scatter_gather", sums, 0, strict, "medium: every rank sums its share"},
    {reduce, "circulant", blocks, 1, strict, "long: a pipe of few hops"},
    {reduce, "chain", segments, 1, lean, "long: a pipe from neighbour to neighbour"},
    {reduce, "linear", whole, 0, lean, "operands in order, and the root is not rank 0"},
    {reduce, "gather", whole, 0, 0, "short, operands in order: fewest rounds"},
    {reduce, "bruck", sums, 0, 0, "medium, operands in order: few rounds"},
    {reduce, "direct", sums, 0, 0, "long, operands in order: least traffic"},
    {reduce, "hierarchical", whole, 0, on_nodes, kHierarchical},
    {reduce, "hierarchical_chain", segments, 1, on_nodes, kHierarchicalChain},
    {reduce_scatter, "ring", segments, 0, lean, "long: least traffic, between neighbours"},
    {reduce_scatter, "recursive_halving", segments, 0, 0, "least traffic in fewest rounds"},
    {reduce_scatter, "circulant", segments, 0, strict, "least traffic in fewest rounds"},
    {reduce_scatter, "direct", segments, 0, 0, "operands in order: least traffic"},
    {reduce_scatter, "bruck", segments, 0, 0, "operands in order: few rounds"},
    {reduce_scatter, "hierarchical", whole, 0, on_nodes, kHierarchical},
    {reduce_scatter, "multilane", segments, 0, on_nodes, kMultilane},
    {allgather, "ring", segments, 0, lean, "long: least traffic, between neighbours"},
    {allgather, "circulant", whole, 0, 0, "least traffic in fewest rounds"},
    // Nearly the same where messages are long; measured, multilane is ahead there (0045).
    {allgather, "multilane", segments, 0, on_nodes, kMultilane},
    {allgather, "hierarchical", whole, 0, on_nodes, kHierarchical},
    {alltoall, "pairwise", whole, 0, 0, "long: least traffic"},
    {alltoall, "bruck", whole, 0, 0, "short: fewest rounds", {2, 0}},
    {alltoall, "bruck", whole, 0, 0, "short: few rounds, less traffic", {4, 0}},
    {gather, "linear", whole, 0, lean, "long: no detour"},
    {gather, "binomial", whole, 0, lean, "short: fewest rounds"},
    {scatter, "linear", whole, 0, lean, "long: no detour"},
    {scatter, "binomial", whole, 0, lean, "short: fewest rounds"},
    {barrier, "dissemination", whole, 0, 0, "fewest rounds"},
};

const Algorithm& algorithm_of(const Candidate& row) {
  const auto all = registry();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Algorithm* a) {
    return a->collective == row.collective && a->name == row.algorithm;
  });
  require(found != all.end(), "choose: there is no ", row.algorithm);
  return **found;
}

// In a pipe there and back (hops > 1) as many segments must be under way as there are hops: a rank
// keeps each from its sum until its result has come.
int window_of(const Algorithm& a, const Problem& p, int segments) {
  int window = kWindow;
  for (const Candidate& row : kCandidates)
    if (row.cut == CutInto::segments && row.hops > 1 && &algorithm_of(row) == &a)
      window = std::max(window, static_cast<int>(a.cost(p, row.knobs).rounds));
  return std::min(segments, window);
}

Choice choice_of(const Candidate& row, const Algorithm& a, const Problem& p, const Estimate& e) {
  Choice choice{.algorithm = &a, .why = row.why, .expected_s = e.seconds};
  choice.cut.knobs = row.knobs;
  choice.cut.in_step = e.in_step;
  // A piece is one block of each tree, where there are two.
  if (row.cut == CutInto::blocks)
    choice.cut.knobs.blocks = e.pieces * a.cuts(p, {.radix = 0, .blocks = 1});
  else choice.cut.segments = e.pieces;
  choice.cut.whole_tail = e.whole_tail;
  choice.cut.window = window_of(a, p, choice.cut.segments);
  return choice;
}

// Bytes below which a message is faster than symmetric memory.
constexpr std::size_t kShortSymmetric = 2u << 10;
// Blocks in which a long message is summed, and the bytes of one that each rank has at least.
constexpr int kSymmetricBlocks = 4;
constexpr std::size_t kSymmetricPart = 128u << 10;
// Bytes of a rank's part in each block where a sum takes several steps, and the most such blocks.
constexpr std::size_t kSymmetricSum = 256u << 10, kMostSymmetricSums = 256;

// Where every rank reaches all buffers, nobody needs to send anything but a very short message.
std::optional<Choice> chosen_symmetric(const Problem& p, std::size_t bytes) {
  if (!p.symmetric || p.ranks == 1 || bytes < kShortSymmetric) return {};
  for (const Algorithm* a : registry()) {
    if (a->collective != p.collective || !a->uses(Access::symmetric) || why_not(*a, p)) continue;
    Choice choice{.algorithm = a, .why = "symmetric memory: every rank works on all of it"};
    const std::size_t part = bytes / static_cast<std::size_t>(p.ranks);
    if (a->takes.blocks && p.ranks > kSourcesAtOnce)
      choice.cut.knobs.blocks =
          static_cast<int>(std::min(part / kSymmetricSum + 1, kMostSymmetricSums));
    else if (a->takes.blocks && part >= kSymmetricBlocks * kSymmetricPart)
      choice.cut.knobs.blocks = kSymmetricBlocks;
    return choice;
  }
  return {};
}

// Where the system copies between ranks' buffers: once, and each time at the price of a call and of
// a walk over pages. From where on that pays was measured: docs/design/0023-attached.md.
struct SingleCopy {
  Collective collective;
  std::string_view algorithm;
  std::size_t from_bytes;
  int to_ranks;
  const char* why;
};
constexpr SingleCopy kSingleCopy[] = {
    {broadcast, "single_copy", 1u << 20, 2, "two of a node, long: copied once"}};

std::optional<Choice> chosen_single_copy(const Problem& p, std::size_t bytes) {
  for (const SingleCopy& row : kSingleCopy) {
    if (row.collective != p.collective || bytes < row.from_bytes) continue;
    const Algorithm& a = find_algorithm(row.collective, row.algorithm);
    if (p.ranks > 1 && p.ranks <= row.to_ranks && !why_not(a, p))
      return Choice{.algorithm = &a, .why = row.why};
  }
  return {};
}

// Ranks of one node read each other's staging buffers ("stages") instead of sending. A message
// passes in blocks that stay in the cache with their copies, as long as the stages have room. The
// first row that fits is taken. Numbers without a page: docs/design/0019-straight.md.
struct Staged {
  Collective collective;
  std::string_view algorithm;
  std::size_t from_bytes;    // of the message
  int from_ranks, to_ranks;
  double room;               // bytes of the stage per byte of a block
  bool flows;                // some ranks copy in while others copy out the block before
  const char* why;
};

constexpr std::size_t kFlows = 32u << 10;   // bytes from which that pays,
constexpr std::size_t kPieces = 4;          // in so many blocks at least
constexpr std::size_t kSlotLoss = 128;      // bytes of a stage that each slot's rounding takes
constexpr double kOfStage = 0.9;            // the part of a stage that is counted on
constexpr int kAny = std::numeric_limits<int>::max();

constexpr const char* kSliced = "one node: each sums a slice";

constexpr Staged kStaged[] = {
    {allreduce, "two_shot", (512u << 10) + 1, 2, 2, 2, false, kSliced},
    {allreduce, "two_shot", 16u << 10, 3, kAny, 3, false, kSliced},
    {allreduce, "one_shot", 0, 2, kAny, 1, false, "one node, short: one signal"},
    {allreduce, "two_shot", 0, 2, 2, 2, false, kSliced},   // where stages have little room
    {broadcast, "staged", 0, 2, kAny, 4, true, "one node: all copy from the root"},
    {reduce, "two_shot", 64u << 10, 4, kAny, 3, false, "one node, long: each sums a slice"},
    {reduce, "staged", 0, 2, kAny, 4, true, "one node: the root sums"},
    {reduce_scatter, "staged", 0, 2, kAny, 2, false, "one node: each sums its own"},
    {allgather, "staged", 0, 2, kAny, 2, false, "one node: each copies what is shown"},
    {alltoall, "staged", 0, 2, kAny, 2, false, "one node: each takes its own"},
    {barrier, "staged", 0, 2, kAny, 0, false, "one node: one signal"},
};

// Bytes of a block. Shorter blocks mean more barriers, longer ones leave the caches. With more than
// two ranks all blocks under way are to stay in the caches, but each rank's slice should be worth
// its barrier.
std::size_t block_of(const Staged& row, int ranks, std::size_t bytes) {
  const std::size_t kib = 1u << 10;
  if (row.flows) return std::clamp(bytes / 16, 64 * kib, 512 * kib);
  if (ranks > 2)
    return std::clamp(static_cast<std::size_t>(ranks) * 16 * kib, 128 * kib, 1024 * kib);
  if (bytes <= 512 * kib) return 512 * kib;
  return std::max(std::clamp(bytes / 8, 128 * kib, 256 * kib), std::min(bytes / 128, 512 * kib));
}

std::optional<Choice> chosen_staged(const Problem& p, const ChoiceInputs& now,
                                    const Algorithm* only) {
  if (!p.one_node || now.stage_bytes == 0) return {};
  for (const Staged& row : kStaged) {
    if (row.collective != p.collective) continue;
    const Algorithm& a = find_algorithm(row.collective, row.algorithm);
    const bool fits =
        now.bytes >= row.from_bytes && p.ranks >= row.from_ranks && p.ranks <= row.to_ranks;
    if (!only && !fits) continue;
    if (why_not(a, p) || (only && &a != only)) continue;
    Choice choice{.algorithm = &a, .why = row.why};
    if (!a.takes.blocks) {
      const bool has_room = row.room * double(now.bytes) <= kOfStage * double(now.stage_bytes);
      if (only || has_room) return choice;
      continue;
    }
    // Slots, at most three for each rank and some, are rounded up to cache lines.
    const std::size_t lost = kSlotLoss * (3 * static_cast<std::size_t>(p.ranks) + 4);
    if (now.stage_bytes <= 2 * lost) continue;
    const double there = kOfStage * double(now.stage_bytes - lost);
    const auto longest = static_cast<std::size_t>(there / row.room);
    const std::size_t block = std::min(block_of(row, p.ranks, now.bytes), longest);
    const std::size_t least = row.flows && now.bytes >= kFlows ? kPieces : 1;
    const std::size_t blocks = std::max(least, (now.bytes + block - 1) / block);
    if (blocks > std::size_t(kMostBlocks)) continue;   // signals are counted in 16 bits
    choice.cut.knobs.blocks = static_cast<int>(blocks);
    return choice;
  }
  return {};
}

// The choice, or how `only` is best cut; an algorithm that has no row is taken whole.
// `in_segments`: the caller wants several, which staging buffers and single copies do not have.
Choice chosen(const Problem& p, const ChoiceInputs& now, const Algorithm* only, bool in_segments) {
  if (auto found = chosen_symmetric(p, now.bytes); found && (!only || only == found->algorithm))
    return *found;
  if (auto copied = chosen_single_copy(p, now.bytes);
      copied && !in_segments && (!only || only == copied->algorithm))
    return *copied;
  if (auto staged = chosen_staged(p, now, only); staged && !in_segments) return *staged;
  std::optional<Choice> choice;
  double least = 0;
  for (const Candidate& row : kCandidates) {
    if (row.collective != p.collective) continue;
    const Algorithm& a = algorithm_of(row);
    if (why_not(a, p) || (only && &a != only)) continue;
    if (!only && (row.traits & named)) continue;
    if (!only && (row.traits & on_nodes) && p.one_node) continue;
    const Estimate e = estimate(row, a, p, now);
    if (choice && e.seconds >= kMargin * least) continue;
    Choice candidate = choice_of(row, a, p, e);
    if (a.by_nodes() && stages_in_nodes(p)) {
      if (!fits_staging(candidate, p, now, kWindow)) continue;
      const int pieces = candidate.cut.segments;
      if (pieces != e.pieces) candidate.expected_s = estimate(row, a, p, now, pieces).seconds;
    }
    least = e.seconds;
    choice = candidate;
  }
  if (!choice && only) choice = Choice{.algorithm = only, .why = ""};
  require(choice.has_value(), "choose: no ", name_of(p.collective), " serves this problem");
  if (only) choice->why = "asked for";
  return *choice;
}

const Algorithm& asked_for(const Problem& p, const std::string& name) {
  const Algorithm& a = find_algorithm(p.collective, name);
  check_serves(a, p);
  return a;
}

bool is_named(const Overrides& wish) { return !wish.algorithm.empty() && wish.algorithm != "auto"; }

struct Knob {
  const char* name;
  int Knobs::*value;
  bool Takes::*taken;
  int least, most;
};
constexpr Knob kKnobs[] = {{"radix", &Knobs::radix, &Takes::radix, 2, kMostRadix},
                           {"blocks", &Knobs::blocks, &Takes::blocks, 1, kMostBlocks}};

std::string owners_of(const Knob& knob, Collective collective) {
  std::string names;
  for (const Algorithm* a : registry())
    if (a->collective == collective && a->takes.*knob.taken)
      names += str(names.empty() ? "" : ", ", a->name);
  return names.empty() ? str("no ", name_of(collective), " has one.")
                       : str("these have one: ", names, ".");
}

}  // namespace

void check_knobs(const Algorithm& a, const Knobs& knobs) {
  for (const Knob& knob : kKnobs) {
    const int value = knobs.*knob.value;
    if (value == 0) continue;
    const std::string where = str(name_of(a.collective), "/", a.name, ": ");
    if (value < knob.least || value > knob.most)
      fail(Fault::usage, where, knob.name, " is ", value, "; it must be ", knob.least, " to ",
           knob.most, ", or 0 to leave the choice to Paceline.");
    if (!(a.takes.*knob.taken))
      fail(Fault::usage, where, knob.name, " is ", value, ", but it has no ", knob.name, "; ",
           owners_of(knob, a.collective));
  }
}

const Machine& usual_machine(int ranks_per_node) {
  static const Machine inside = machine_from("shm"), across = machine_from("edr-100g");
  return ranks_per_node == 0 ? inside : across;
}

Choice choose(const Problem& problem, const ChoiceInputs& now, const Overrides& wish) {
  const auto where = name_of(problem.collective);
  check_late(problem);
  const auto [segments, window] = std::pair{wish.cut.segments, wish.cut.window};
  if (segments < 0 || segments > kMostAsked || window < 0 || window > kMostAsked)
    fail(Fault::usage, where, ": ", segments, " segments with a window of ", window,
         "; both go from 1 to ", kMostAsked, ", 0 leaves the choice to Paceline.");
  for (const Knob& knob : kKnobs)
    if (wish.cut.knobs.*knob.value != 0 && !is_named(wish))
      fail(Fault::usage, where, ": ", knob.name, " is ", wish.cut.knobs.*knob.value,
           ", but no algorithm is named; name one with algorithm=; ",
           owners_of(knob, problem.collective));

  const bool in_segments = wish.cut.segments > 1;
  const Algorithm* only = is_named(wish) ? &asked_for(problem, wish.algorithm) : nullptr;
  const bool claims = only && claims_in_segments(*only);   // its ranks claim positions
  if (only) check_claimed(*only, wish.cut);
  if (only && only->uses(Access::staging) && in_segments && !claims)
    fail(Fault::usage, where, ": ", wish.cut.segments, " segments, but ", only->name,
         " passes its message on in blocks; use blocks= instead, or another algorithm.");
  Choice choice = chosen(problem, now, only, in_segments);
  // Where some ranks are predicted to come late (Problem::late), another algorithm or cut may suit.
  if (!only && wish.cut.segments == 0)
    if (const auto late = chosen_late(problem, now, choice)) choice = *late;
  if (only && wish.cut.segments == 0)
    if (const auto cut = cut_for_late(*only, problem, now)) choice.cut = *cut;
  check_knobs(*choice.algorithm, wish.cut.knobs);
  if (wish.cut.segments > 0) {
    // What is left to choose is chosen for one segment.
    const ChoiceInputs each{now.bytes / static_cast<std::size_t>(wish.cut.segments), now.machine};
    choice.cut.knobs = chosen(problem, each, choice.algorithm, in_segments).cut.knobs;
    choice.cut.segments = wish.cut.segments;
    choice.cut.whole_tail = false;
    choice.cut.window = window_of(*choice.algorithm, problem, wish.cut.segments);
  }
  if (claims && wish.cut.segments == 0)
    choice.cut.segments = segments_in_stage(problem, now, choice);
  if (claims && choice.cut.segments > 1) choice.cut.window = kClaimedWindow;
  if (wish.cut.window > 0) choice.cut.window = wish.cut.window;
  for (const Knob& knob : kKnobs)
    if (wish.cut.knobs.*knob.value > 0) choice.cut.knobs.*knob.value = wish.cut.knobs.*knob.value;
  return choice;
}

}  // namespace paceline
