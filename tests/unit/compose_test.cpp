// A hierarchical allreduce, made of the flat collectives in two ways, and proven as a whole.
#include "coll/algorithms.hpp"
#include "ir/compose.hpp"

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "world/worlds.hpp"

using namespace paceline;

namespace {

// The knob's radix is the number of ranks in a node here.
struct Nodes {
  int size, count, node, lane;
  Nodes(const Problem& pb, const Knobs& knobs)
      : size(knobs.radix), count(pb.ranks / size), node(pb.rank / size), lane(pb.rank % size) {}

  std::vector<int> mine() const {   // all ranks of this rank's node
    std::vector<int> out;
    for (int i = 0; i < size; ++i) out.push_back(node * size + i);
    return out;
  }
  std::vector<int> across(int lane_of_node) const {   // one rank of every node
    std::vector<int> out;
    for (int n = 0; n < count; ++n) out.push_back(n * size + lane_of_node);
    return out;
  }
};

int one_cut(const Problem&, const Knobs&) { return 1; }
int cut_by_ranks(const Problem& pb, const Knobs&) { return pb.ranks; }
Cost no_cost(const Problem&, const Knobs&) { return {}; }

// Reduce to a leader, allreduce among the leaders, broadcast from it.
void build_leaders(const Problem& pb, const Knobs& knobs, Builder& b) {
  const Nodes nodes(pb, knobs);
  const Region input = region_of(b.input()), output = region_of(b.output());
  compose(b, pb.rank,
          {{.algorithm = &reduce_binomial, .members = nodes.mine(), .input = input,
            .output = output},
           {.algorithm = &allreduce_recursive_doubling, .members = nodes.across(0),
            .input = output, .output = output, .completes = true},
           {.algorithm = &broadcast_binomial, .members = nodes.mine(), .input = output,
            .output = output}});
}

// Every lane of the nodes has a share of the vector: reduce-scatter in the node, allreduce of the
// share among the lane's ranks, allgather in the node.
void build_lanes(const Problem& pb, const Knobs& knobs, Builder& b) {
  const Nodes nodes(pb, knobs);
  const Region input = region_of(b.input()), output = region_of(b.output());
  const Region share{output.space, nodes.lane * nodes.count, nodes.count};
  compose(b, pb.rank,
          {{.algorithm = &reduce_scatter_ring, .members = nodes.mine(), .input = input,
            .output = output},
           {.algorithm = &allreduce_ring, .members = nodes.across(nodes.lane), .input = share,
            .output = share, .completes = true},
           {.algorithm = &allgather_ring, .members = nodes.mine(), .input = output,
            .output = output}});
}

const Algorithm kLeaders{.collective = Collective::allreduce, .name = "leaders", .cuts = one_cut,
                         .build = build_leaders, .cost = no_cost};
const Algorithm kLanes{.collective = Collective::allreduce, .name = "lanes", .cuts = cut_by_ranks,
                       .build = build_lanes, .cost = no_cost};

}  // namespace

TEST_CASE("compose: two forms of a hierarchical allreduce, with every pipeline") {
  int proven = 0;
  for (const auto& [nodes, size] : {std::pair{2, 2}, {3, 2}, {2, 3}, {3, 3}})
    for (const Algorithm* form : {&kLeaders, &kLanes})
      for (Shape shape : test::plain_shapes(Collective::allreduce, nodes * size)) {
        if (shape.ranks != nodes * size || (shape.ordered && form == &kLanes)) continue;
        for (const Cut& pipe : test::kPipes) {
          shape.cut = {.segments = pipe.segments, .window = pipe.window};
          shape.cut.knobs.radix = size;
          const World world = make_world(*form, shape);
          const std::string what = str(describe(*form, shape), ", nodes of ", size);
          const Verdict proof = verify(world);
          CHECK_MESSAGE(proof, what, ": ", proof.fault);
          for (std::uint64_t seed = 0; seed < 3; ++seed)
            CHECK_MESSAGE(shake(world, seed), what, ": ", shake(world, seed).fault);
          ++proven;
        }
      }
  MESSAGE(proven, " hierarchical worlds proven");
}

// The share's blocks depend on the lane's own sums only, so the allreduce of a share need not wait
// for the rest of the vector; the pipeline then keeps both networks busy.
TEST_CASE("compose: phases are ordered by the blocks they touch, not by a barrier between them") {
  const World world = make_world(kLeaders, {.ranks = 4, .cut = {.knobs = {.radix = 2}}});
  const Schedule& member = world[1];   // sends its vector to the leader and awaits the result
  REQUIRE(member.steps.size() == 2);
  CHECK(edges_of(member).empty());
}

TEST_CASE("compose: a phase whose algorithm rejects its part refuses the whole") {
  const Shape shape{.ranks = 4, .ordered = true, .cut = {.knobs = {.radix = 2}}};
  try {
    make_world(kLanes, shape);
    FAIL("a ring cannot keep the order");
  } catch (const Error& error) {
    CHECK(error.fault() == Fault::refusal);
    CHECK(std::string(error.what()).find("phase reduce_scatter/ring") != std::string::npos);
  }
  CHECK(verify(make_world(kLeaders, shape)));
}

TEST_CASE("compose: a sum that no phase completes is rejected") {
  Algorithm forgetful = kLeaders;
  forgetful.build = [](const Problem& pb, const Knobs&, Builder& b) {
    const Region output = region_of(b.output());
    const std::vector<int> all = all_ranks(pb.ranks);
    compose(b, pb.rank,
            {{.algorithm = &reduce_binomial, .members = all, .input = region_of(b.input()),
              .output = output},
             {.algorithm = &broadcast_binomial, .members = all, .input = output,
              .output = output}});
  };
  CHECK(!verify(make_world(forgetful, {.ranks = 3})));
}

// reduce/scatter_gather: ranks without an output sum their block in a slot for this block alone.
TEST_CASE("compose: a phase may live in scratch that holds a part of its region") {
  const World world = make_world(reduce_scatter_gather, {.collective = Collective::reduce,
                                                         .ranks = 5, .root = 2});
  CHECK(verify(world));
  Algorithm elsewhere = reduce_scatter_gather;   // the slot is for the block behind the right one
  elsewhere.build = [](const Problem& pb, const Knobs&, Builder& b) {
    const Region input = region_of(b.input());
    const Region sums = pb.rank == 0 ? region_of(b.output())
                                     : region_in(b.scratch(b.input((pb.rank + 1) % 5)), input);
    compose(b, pb.rank, {{.algorithm = &reduce_scatter_circulant, .members = all_ranks(pb.ranks),
                          .input = input, .output = sums, .completes = true}});
  };
  CHECK_THROWS_AS(make_world(elsewhere, {.collective = Collective::reduce, .ranks = 5}), Error);
}
