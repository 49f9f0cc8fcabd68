// The price of a call: every call has one, and the choice uses it.
#include <doctest/doctest.h>

#include <algorithm>

#include "base/str.hpp"
#include "coll/algorithms.hpp"
#include "transport/shm/staging.hpp"
#include "tune/choose.hpp"
#include "tune/estimate.hpp"

using namespace paceline;

TEST_CASE("price: every choice has a price, and asked again it is about the same") {
  double worst = 1;
  for (const bool near : {true, false})
    for (int c = 0; c < kCollectives; ++c)
      for (const int ranks : {2, 3, 8, 17})
        for (const std::size_t bytes : {8u, 4u << 10, 256u << 10, 16u << 20}) {
          Problem p{.collective = static_cast<Collective>(c), .ranks = ranks};
          p.one_node = near;
          const Machine& machine = usual_machine(near ? 0 : 1);
          const ChoiceInputs now{bytes, machine, near ? stage_bytes(8u << 20, ranks) : 0};
          const Choice choice = choose(p, now);
          const double again = expected_s(choice, p, now);
          CAPTURE(str(choice.algorithm->name, " of ", bytes, " bytes on ", ranks));
          CHECK(choice.expected_s > 0);
          worst = std::max({worst, again / choice.expected_s, choice.expected_s / again});
        }
  CHECK(worst < 1.25);
  MESSAGE("at worst ", worst, " times");
}

TEST_CASE("price: in shared memory signals, sums and copies, at the machine's rates") {
  const Problem p{.collective = Collective::allreduce, .ranks = 4, .one_node = true};
  ChoiceInputs now{1000, machine_from("inside_alpha_us=2,reduce_gbyte_per_s=1,copy_gbyte_per_s=4"),
                   1u << 20};
  const Choice choice{.algorithm = &allreduce_one_shot};
  CHECK(expected_s(choice, p, now) == doctest::Approx(2e-6 + 3 * 1000e-9 + 250e-9));
  now.bytes = 0;
  CHECK(expected_s(choice, p, now) == doctest::Approx(2e-6));
}
