// Messages that ranks of a node take in blocks: number and order of the blocks.
#include <doctest/doctest.h>

#include <vector>

#include "coll/registry.hpp"
#include "tune/choose.hpp"

using namespace paceline;

namespace {

constexpr int kBlocks = 4;

// Returns the blocks that a rank works on, step by step.
std::vector<int> blocks_in_order(const Algorithm& a, const Problem& p) {
  const Schedule s = build(a, p, {.radix = 0, .blocks = kBlocks});
  std::vector<int> blocks;
  for (const Step& step : s.steps) {
    if (step.kind != Kind::copy && step.kind != Kind::reduce) continue;
    for (const Segment* segment = s.begin(step); segment != s.end(step); ++segment)
      if (segment->space != Space::scratch)
        blocks.push_back(segment->first % s.cuts / (s.cuts / kBlocks));
  }
  return blocks;
}

int blocks_of_sum(int ranks, std::size_t bytes) {
  const Problem p{
      .collective = Collective::allreduce, .ranks = ranks, .one_node = true, .symmetric = true};
  return choose(p, {bytes, usual_machine(), 8u << 20}).cut.knobs.blocks;
}

}  // namespace

// The end of the caller's array, which it wrote last, is still in the caches (0019).
TEST_CASE("blocks: the last one comes first, the first one last") {
  int seen = 0;
  for (const Algorithm* a : registry())
    for (int ranks : {2, 3})
      for (int rank = 0; rank < ranks; ++rank) {
        const Problem p{.collective = a->collective,
                        .ranks = ranks,
                        .rank = rank,
                        .one_node = true,
                        .symmetric = a->uses(Access::symmetric)};
        if (!a->is_load_store() || !a->takes.blocks || why_not(*a, p)) continue;
        CAPTURE(a->name);
        const std::vector<int> blocks = blocks_in_order(*a, p);
        REQUIRE_FALSE(blocks.empty());
        CHECK(blocks.front() == kBlocks - 1);
        CHECK(blocks.back() == 0);
        ++seen;
      }
  CHECK(seen >= 8 * (2 + 3));   // algorithms, each with all ranks of both worlds
}

TEST_CASE("blocks: of shared arrays four, where each is worth its step") {
  CHECK(blocks_of_sum(2, 1u << 20) == 4);
  CHECK(blocks_of_sum(2, (1u << 20) - 2) == 0);
  CHECK(blocks_of_sum(2, 64u << 20) == 4);
  CHECK(blocks_of_sum(4, 2u << 20) == 4);
  CHECK(blocks_of_sum(4, 1u << 20) == 0);
  CHECK(blocks_of_sum(17, 17u << 20) == 5);   // more steps than one: a sum stays in the cache
}
