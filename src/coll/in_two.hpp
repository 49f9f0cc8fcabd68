// Algorithms that are two others among all ranks, one after the other.
#pragma once

#include <vector>

#include "ir/compose.hpp"

namespace paceline {

// An allreduce: every rank sums a block, then all get all blocks.
inline void scatter_and_spread(Builder& b, const Algorithm& scatter, const Algorithm& spread,
                               const Knobs& knobs = {}) {
  const Region input = region_of(b.input()), output = region_of(b.output());
  const std::vector<int> everybody = all_ranks(b.problem().ranks);
  compose(b, b.problem().rank,
          {{.algorithm = &scatter, .knobs = knobs, .members = everybody,
            .input = input, .output = output, .completes = true},
           {.algorithm = &spread, .knobs = knobs, .members = everybody,
            .input = output, .output = output, .whole = true}});
}

// A reduce: every rank sums a block, then the root gets all blocks. Only the root has an output;
// another rank has room of its own for the block that it sums.
inline void scatter_and_collect(Builder& b, const Algorithm& scatter, const Algorithm& gather) {
  const Problem& pb = b.problem();
  const Region input = region_of(b.input());
  const Region sums = pb.rank == pb.root ? region_of(b.output())
                                         : region_in(b.scratch(b.input(pb.rank)), input);
  const std::vector<int> everybody = all_ranks(pb.ranks);
  compose(b, pb.rank,
          {{.algorithm = &scatter, .members = everybody,
            .input = input, .output = sums, .completes = true},
           {.algorithm = &gather, .members = everybody, .root = pb.root,
            .input = sums, .output = sums, .whole = true, .reads_scratch = true}});
}

// A broadcast: the root deals out the blocks, then all get all blocks.
inline void deal_and_spread(Builder& b, const Algorithm& scatter, const Algorithm& spread) {
  const Region all = region_of(b.output());
  const std::vector<int> everybody = all_ranks(b.problem().ranks);
  compose(b, b.problem().rank,
          {{.algorithm = &scatter, .members = everybody, .root = b.problem().root,
            .input = all, .output = all},
           {.algorithm = &spread, .members = everybody, .input = all, .output = all}});
}

// An allreduce: rank 0 gets the sum, then all ranks do.
inline void reduce_and_tell(Builder& b, const Algorithm& reduce, const Algorithm& broadcast) {
  const Region input = region_of(b.input()), output = region_of(b.output());
  const std::vector<int> everybody = all_ranks(b.problem().ranks);
  compose(b, b.problem().rank,
          {{.algorithm = &reduce, .members = everybody,
            .input = input, .output = output, .completes = true},
           {.algorithm = &broadcast, .members = everybody, .input = output, .output = output}});
}

inline Cost cost_of_two(const Problem& pb, const Algorithm& first, const Algorithm& second,
                        const Knobs& knobs = {}) {
  const Cost before = first.cost(pb, knobs), after = second.cost(pb, knobs);
  return {.rounds = before.rounds + after.rounds, .volume = before.volume + after.volume,
          .reduced = before.reduced + after.reduced,
          .messages = before.sent(pb.ranks) + after.sent(pb.ranks)};
}

}  // namespace paceline
