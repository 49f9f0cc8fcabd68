// Where calls may come to know who is late: `stable` gives up at most 3 % to begin in the family
// that adds in rank order, and a call that has not begun there does not go over.
#include <doctest/doctest.h>

#include <algorithm>

#include "coll/registry.hpp"
#include "tune/choose.hpp"
#include "tune/estimate.hpp"
#include "tune/late.hpp"

using namespace paceline;

namespace {

constexpr double kMost = 1.03;
constexpr double kBeta = 1e-9;

// Rows of the choice that sums between nodes of one rank each come to.
constexpr Candidate kRows[] = {
    {Collective::allreduce, "recursive_doubling"},
    {Collective::allreduce, "ring", CutInto::sums, 0, lean},
    {Collective::allreduce, "rabenseifner", CutInto::sums},
    {Collective::allreduce, "circulant", CutInto::sums, 0, strict},
    {Collective::allreduce, "direct", CutInto::sums},
    {Collective::reduce, "binomial", CutInto::whole, 0, lean},
    {Collective::reduce, "scatter_gather", CutInto::sums, 0, strict},
    {Collective::reduce, "circulant", CutInto::blocks, 1, strict},
    {Collective::reduce, "chain", CutInto::segments, 1, lean},
    {Collective::reduce, "bruck", CutInto::sums},
    {Collective::reduce, "direct", CutInto::sums},
};

ChoiceInputs network(double alpha_s, std::size_t bytes, bool predicts) {
  ChoiceInputs now{.bytes = bytes, .machine = usual_machine(1)};
  now.machine.across.alpha_s = alpha_s;
  now.machine.across.beta_s_per_byte = kBeta;
  now.predicts = predicts;
  return now;
}

double seconds_of(std::string_view name, const Problem& p, const ChoiceInputs& now) {
  for (const Candidate& row : kRows)
    if (row.algorithm == name && row.collective == p.collective)
      return estimate(row, find_algorithm(row.collective, std::string(name)), p, now).seconds;
  return 0;
}

struct Sides {
  double most_within = 0, least_beyond = 1e9;   // direct's time over that of the usual choice
  int within = 0, beyond = 0, went_over = 0;
};

void look(const Problem& p, double alpha_s, std::size_t bytes, Sides& sides) {
  const Choice usual = choose(p, network(alpha_s, bytes, false));
  const Choice aware = choose(p, network(alpha_s, bytes, true));
  const double best = seconds_of(usual.algorithm->name, p, network(alpha_s, bytes, false));
  if (best == 0) return;   // of no row above
  const double ratio = seconds_of("direct", p, network(alpha_s, bytes, false)) / best;
  CAPTURE(usual.algorithm->name);
  CAPTURE(ratio);
  Problem late = p, exact = p;
  late.late = exact.late = {p.ranks / 2};
  exact.fast = true;
  const Choice then = choose(late, network(alpha_s, bytes, true));
  const Choice exact_then = choose(exact, network(alpha_s, bytes, true));
  if (ratio <= kMost) {
    CHECK(aware.algorithm->in_rank_order);
    CHECK(then.algorithm->in_rank_order);   // direct or tail_direct, of the same bits
    sides.most_within = std::max(sides.most_within, ratio);
    ++sides.within;
  } else {
    CHECK(aware.algorithm == usual.algorithm);
    CHECK(then.algorithm == usual.algorithm);   // whoever is late
    sides.least_beyond = std::min(sides.least_beyond, ratio);
    ++sides.beyond;
    sides.went_over += exact_then.algorithm->expects_late;
  }
}

}  // namespace

TEST_CASE("late: with fewer than four ranks or nodes nobody can be late, and nothing is given up") {
  for (int ranks : {2, 3})
    for (std::size_t bytes = 4096; bytes <= (64u << 20); bytes *= 4)
      for (const Collective c : {Collective::allreduce, Collective::reduce}) {
        Problem p{.collective = c, .ranks = ranks};
        CHECK(choose(p, network(1e-5, bytes, true)).algorithm ==
              choose(p, network(1e-5, bytes, false)).algorithm);
        for (int rank = 0; rank < 2 * ranks; ++rank) p.nodes.push_back(rank / 2);
        p.ranks = 2 * ranks;
        CHECK(choose(p, network(1e-5, bytes, true)).algorithm ==
              choose(p, network(1e-5, bytes, false)).algorithm);
      }
}

TEST_CASE("late: on nodes stable begins in the order of nodes, and only late nodes change that") {
  Problem p{.collective = Collective::allreduce, .ranks = 8, .nodes = {0, 0, 1, 1, 2, 2, 3, 3}};
  ChoiceInputs now = network(1e-5, 4u << 20, true);
  now.machine.ranks_per_node = 2;
  CHECK(std::string_view(choose(p, now).algorithm->name) == "multilane_direct");
  p.late = {5};
  CHECK(std::string_view(choose(p, now).algorithm->name) == "multilane_tail_direct");
  p.late = {5, 4};   // of the same node
  CHECK(std::string_view(choose(p, now).algorithm->name) == "multilane_tail_direct");
  p.late = {5, 2};   // two of four nodes
  CHECK(std::string_view(choose(p, now).algorithm->name) == "multilane_direct");
  p.late = {5};
  p.fast = true;
  CHECK(std::string_view(choose(p, now).algorithm->name) == "multilane_tail_ring");
  now.predicts = false;
  p.fast = false;   // it may not have begun there
  CHECK(std::string_view(choose(p, now).algorithm->name) == "multilane");
}

TEST_CASE("late: stable begins in rank order within 3 % of the best, and only then goes over") {
  Sides sides;
  for (const Collective c : {Collective::allreduce, Collective::reduce})
    for (int ranks : {4, 6, 8, 12, 16, 32})
      for (std::size_t bytes = 4096; bytes <= (64u << 20); bytes *= 4)
        for (double alpha_s = 1e-7; alpha_s < 1e-3; alpha_s *= 1.07)
          look({.collective = c, .ranks = ranks}, alpha_s, bytes, sides);
  MESSAGE(sides.within, " within, up to ", sides.most_within, "; ", sides.beyond, " beyond, from ",
          sides.least_beyond, ", of which exact sums go over in ", sides.went_over);
  CHECK(sides.most_within > 1.02);     // both sides have been seen from near
  CHECK(sides.least_beyond < 1.04);
  CHECK(sides.went_over > 0);
}
