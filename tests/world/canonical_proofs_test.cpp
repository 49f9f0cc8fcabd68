// The order of numbers=canonical, proven for every algorithm that claims it.
#include <doctest/doctest.h>

#include "world/worlds.hpp"

namespace paceline {

TEST_CASE("canonical: every algorithm that claims the order is proven to keep it") {
  int proven = 0;
  test::for_all(test::by_length(5, 8, 12), [&](const Algorithm& a, Shape shape) {
    if (!a.can_be_canonical()) return;
    for (const Cut& pipe : test::kPipes) {
      shape.canonical = true;
      const Verdict verdict = verify(test::piped(a, shape, pipe));
      CHECK_MESSAGE(verdict, describe(a, shape), ": ", verdict.fault);
      proven += bool(verdict);
      if (a.uses(Access::staging)) break;   // it takes blocks instead
    }
  });
  CHECK(proven > 100);
  for (const Algorithm* a : registry())   // more than one step of stable takes
    for (int p : {17, test::by_length(18, 40, 64)}) {
      if (!a->can_be_canonical()) continue;
      const Shape shape{.collective = a->collective, .ranks = p, .root = 1 % p, .fused = true,
                        .canonical = true};
      const Verdict verdict = verify(make_world(*a, shape));
      CHECK_MESSAGE(verdict, describe(*a, shape), ": ", verdict.fault);
    }
}

}  // namespace paceline
