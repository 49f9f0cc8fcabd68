#include "arrival/metrics.hpp"

#include <vector>

#include <doctest/doctest.h>

namespace paceline {
namespace {

// The equations for p = 3, on paper: 0, 1, 5 have the mean 2 and the distances 2, 1, 3.
const std::vector<double> kArrivals = {0, 5, 1};

using Metric = Imbalance (*)(std::span<const double>);

bool keeps_the_equations(Metric metric) {
  const Imbalance found = metric(kArrivals);
  const std::vector<double> late = {1e7, 1e7 + 5, 1e7 + 1};
  const Imbalance shifted = metric(late);
  return found.worst == 5 && found.average == 2 && shifted.worst == 5 && shifted.average == 2;
}

// Mutants: each leaves out a part of an equation.
Imbalance from_zero(std::span<const double> a) {   // worst: the last arrival alone
  Imbalance i = imbalance_of(a);
  i.worst = a[1];
  return i;
}
Imbalance signed_distance(std::span<const double> a) {   // average: without the bars
  return {imbalance_of(a).worst, 0};
}
Imbalance from_first(std::span<const double> a) {   // average: from the first arrival, not the mean
  double sum = 0;
  for (double x : a) sum += x - a[0];
  return {imbalance_of(a).worst, sum / double(a.size()) + 0.5};
}
Imbalance over_all_but_one(std::span<const double> a) {   // average: divided by n - 1
  Imbalance i = imbalance_of(a);
  i.average *= double(a.size()) / double(a.size() - 1);
  return i;
}

}  // namespace

TEST_CASE("imbalance_of: the document's equations, and no mutant of them") {
  CHECK(keeps_the_equations(imbalance_of));
  CHECK_FALSE(keeps_the_equations(from_zero));
  CHECK_FALSE(keeps_the_equations(signed_distance));
  CHECK_FALSE(keeps_the_equations(from_first));
  CHECK_FALSE(keeps_the_equations(over_all_but_one));
}

TEST_CASE("imbalance_of: nobody, one rank, ranks that come together") {
  CHECK(imbalance_of({}).worst == 0);
  const std::vector<double> one = {3.5}, together(7, 2.25);
  CHECK(imbalance_of(one).worst == 0);
  CHECK(imbalance_of(one).average == 0);
  CHECK(imbalance_of(together).worst == 0);
  CHECK(imbalance_of(together).average == 0);
}

}  // namespace paceline
