#include "tune/choose.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "coll/registry.hpp"
#include "ir/pipeline.hpp"

namespace paceline {
namespace {

constexpr std::size_t kShortBlock = 8u << 10;   // a ring's rounds pay from such blocks on
constexpr std::size_t kShortBroadcast = 64u << 10;
constexpr std::size_t kChainSegment = 256u << 10;
constexpr int kMostSegments = 64;
constexpr int kWindow = 4;

Choice chosen(const Problem& p, std::size_t bytes) {
  const bool exact_order = !p.commutative;
  switch (p.collective) {
    case Collective::allreduce:
      if (bytes / static_cast<std::size_t>(p.ranks) <= kShortBlock || exact_order)
        return {&allreduce_recursive_doubling,
                {},
                1,
                1,
                exact_order ? "operands must stay in rank order" : "short: fewest rounds"};
      return {&allreduce_ring, {}, 1, 1, "long: least traffic"};
    case Collective::broadcast: {
      if (bytes <= kShortBroadcast || p.ranks <= 2)
        return {&broadcast_binomial, {}, 1, 1, "short, or two ranks: fewest rounds"};
      const int segments = std::min(kMostSegments, segments_of_size(bytes, kChainSegment));
      return {&broadcast_chain,
              {},
              segments,
              kWindow,
              "long: every link carries the message once, in segments"};
    }
    case Collective::reduce:
      return {&reduce_binomial, {}, 1, 1, "the only reduce"};
    case Collective::reduce_scatter:
      return {&reduce_scatter_ring, {}, 1, 1, "the only reduce_scatter"};
    case Collective::allgather:
      return {&allgather_ring, {}, 1, 1, "the only allgather"};
    case Collective::alltoall:
      return {&alltoall_pairwise, {}, 1, 1, "the only alltoall"};
    case Collective::gather:
      return {&gather_linear, {}, 1, 1, "the only gather"};
    case Collective::scatter:
      return {&scatter_linear, {}, 1, 1, "the only scatter"};
    case Collective::barrier:
      return {&barrier_dissemination, {}, 1, 1, "fewest rounds"};
  }
  return {};
}

}  // namespace

Choice choose(const Problem& problem, std::size_t bytes, const Wish& wish) {
  Choice choice = chosen(problem, bytes);
  if (!wish.algorithm.empty() && wish.algorithm != "auto") {
    choice = {&find_algorithm(problem.collective, wish.algorithm), {}, 1, 1, "asked for"};
    if (const auto reason = choice.algorithm->rejects(problem))
      fail(Fault::refusal, name_of(problem.collective), "/", wish.algorithm, ": ", reason->why,
           ". ",
           reason->instead.empty() ? "No other algorithm here can."
                                   : str("Use algorithm=", reason->instead, ", or auto."));
  }
  if (wish.segments < 0 || wish.segments > 65536 || wish.window < 0 || wish.window > 65536)
    fail(Fault::usage, name_of(problem.collective), ": ", wish.segments,
         " segments with a window of ", wish.window,
         "; both go from 1 to 65536, 0 leaves the choice to Paceline.");
  if (wish.segments > 0) {
    choice.segments = wish.segments;
    choice.window = std::min(wish.segments, kWindow);
  }
  if (wish.window > 0) choice.window = wish.window;
  return choice;
}

}  // namespace paceline
