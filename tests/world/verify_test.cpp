// Proves every algorithm of the registry in every small world.
#include "coll/algorithms.hpp"
#include "verify/verify.hpp"

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "ir/pipeline.hpp"
#include "world/mutate.hpp"
#include "world/worlds.hpp"

using namespace paceline;
using namespace paceline::test;

TEST_CASE("every algorithm is proven in every small world") {
  int proven = 0;
  for_all(by_length(4, 8, 12), [&](const Algorithm& a, Shape shape) {
    for (const Cut& pipe : kPipes) {
      const Verdict verdict = verify(piped(a, shape, pipe));
      CHECK_MESSAGE(verdict, describe(a, shape), ": ", verdict.fault);
      proven += bool(verdict);
      if (a.uses(Access::staging)) break;   // it takes blocks instead
    }
  });
  MESSAGE(proven, " worlds proven");
}

TEST_CASE("every algorithm is proven for other knobs than its own") {
  int proven = 0;
  for (const Algorithm* a : registry())
    for (const Shape& shape : sweep(*a, by_length(4, 8, kKnobRanks))) {
      if (shape.cut.knobs == Knobs{} || !accepts(*a, shape)) continue;
      const Verdict verdict = verify(make_world(*a, shape));
      CHECK_MESSAGE(verdict, describe(*a, shape), ": ", verdict.fault);
      proven += bool(verdict);
    }
  MESSAGE(proven, " worlds proven");
}

TEST_CASE("an algorithm takes the knobs that it says it takes, and no others") {
  const auto text = [](const Algorithm& a, const Knobs& knobs) {
    const Shape shape{.collective = a.collective, .ranks = 7, .cut = {.knobs = knobs}};
    std::string out;
    for (const Schedule& s : make_world(a, shape)) out += print(s) + str(s.cuts, "\n");
    return out;
  };
  for (const Algorithm* a : registry()) {
    CAPTURE(describe(*a, {}));
    CHECK((text(*a, {.radix = 3}) != text(*a, {})) == a->takes.radix);
    CHECK((text(*a, {.blocks = 3}) != text(*a, {})) == a->takes.blocks);
  }
}

// Counts the problems that the other tests skip; an algorithm that rejects every problem fails.
TEST_CASE("rejected problems are few, known, and refused with a reason") {
  for (const Algorithm* a : registry()) {
    const std::string name = str(name_of(a->collective), "/", a->name);
    int accepted = 0, rejected = 0;
    std::string first;
    for (const Shape& shape : plain_shapes(*a, 9)) {
      if (accepts(*a, shape)) {
        ++accepted;
        continue;
      }
      if (rejected++ == 0) first = describe(*a, shape);
      const bool known = shape.ordered || shape.uneven ||
                         (a->uses(Access::symmetric) && shape.in_place);
      CHECK_MESSAGE(known, "rejected for another reason: ", describe(*a, shape));
      CHECK_THROWS_AS(make_world(*a, shape), Error);
    }
    CHECK_MESSAGE(accepted > 0, name, " rejects every problem");
    if (rejected > 0)
      MESSAGE(name, " rejects ", rejected, " of ", accepted + rejected, ", the first: ", first);
  }
}

TEST_CASE("operands stay in rank order where they must") {
  Shape shape;
  shape.ranks = 5;
  shape.ordered = true;
  CHECK(verify(make_world(find_algorithm(Collective::allreduce, "recursive_doubling"), shape)));
  World ring = make_world(find_algorithm(Collective::allreduce, "ring"), {.ranks = 5});
  for (Schedule& s : ring) s.problem.commutative = false;
  CHECK(verify(ring).fault.find("adds out of rank order") != std::string::npos);
}

// The sweep tries uneven units because a rank cannot know the lengths of units that it forwards.
TEST_CASE("units that are forwarded have no length where units differ") {
  World world = make_world(alltoall_bruck, {.collective = Collective::alltoall, .ranks = 5});
  CHECK(verify(world));
  for (Schedule& s : world) s.problem.uneven = true;
  CHECK(verify(world).fault.find("match: ") == 0);
}

TEST_CASE("memory that all can reach: proven as it is, rejected without any one of its signals") {
  int rejected = 0;
  for (Collective c : {Collective::allreduce, Collective::broadcast})
    for (bool in_place : {false, true})
      for (int p = 1; p <= by_length(4, 6, 6); ++p) {
        const World world = shared_world(c, p, in_place);
        const std::string what = str("shared ", name_of(c), ", ", p, " ranks, in place ", in_place);
        const Verdict proof = verify(world);
        CHECK_MESSAGE(proof, what, ": ", proof.fault);
        for (std::uint64_t seed = 0; seed < 5; ++seed) CHECK_MESSAGE(shake(world, seed), what);
        if (p <= 2) CHECK_MESSAGE(explore(world, 50000).verdict, what);
        for (const Mutant& mutant : lost_signals(world)) {
          const Verdict verdict = verify(mutant.world);
          CHECK_MESSAGE(!verdict, what, ": ", mutant.what, " goes unnoticed");
          rejected += !verdict;
        }
      }
  MESSAGE(rejected, " dropped signals noticed");
}

TEST_CASE("ranks that build different schedules are not a world") {
  const Algorithm& ring = find_algorithm(Collective::allgather, "ring");
  World world = make_world(ring, {.ranks = 3});
  world[1] = make_world(ring, {.ranks = 3, .cut = {.segments = 2}})[1];
  CHECK(verify(world).fault == "form: rank 1 has another problem or cuts it otherwise than rank 0");
}

TEST_CASE("a tail that reads scratch needs a lane for every segment") {
  const auto world = [](bool says_so) {
    World out;
    for (int rank = 0; rank < 3; ++rank) {
      Problem problem;
      problem.collective = Collective::reduce;
      problem.ranks = 3;
      problem.rank = rank;
      Schedule one = build(find_algorithm(Collective::reduce, "scatter_gather"), problem, {});
      one.tail_reads_scratch = says_so;
      out.push_back(pipeline(one, 3, 2, Tail::whole));
    }
    return out;
  };
  CHECK(verify(world(true)));
  CHECK(verify(world(false)).fault.find("contract: ") == 0);
}
