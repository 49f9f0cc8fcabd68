// Choices if late ranks may become known: `stable` gives nothing up for that. The usual choice
// stays, and changes only to an algorithm with the same bits.
#include <doctest/doctest.h>

#include "ir/algorithm.hpp"
#include "tune/choose.hpp"

using namespace paceline;

namespace {

constexpr double kBeta = 1e-9;

ChoiceInputs network(double alpha_s, std::size_t bytes) {
  ChoiceInputs now{.bytes = bytes, .machine = usual_machine(1)};
  now.machine.across.alpha_s = alpha_s;
  now.machine.across.beta_s_per_byte = kBeta;
  return now;
}

struct Seen {
  int rings = 0, in_rank_order = 0, stayed = 0, only_exact = 0;
};

void look(const Problem& p, const ChoiceInputs& now, Seen& seen) {
  const Choice usual = choose(p, now);
  Problem late = p, exact = p;
  late.late = exact.late = {p.ranks / 2};
  exact.fast = true;
  const Choice then = choose(late, now), exact_then = choose(exact, now);
  CAPTURE(usual.algorithm->name);
  CHECK(!usual.algorithm->expects_late());
  if (!then.algorithm->expects_late()) {
    CHECK(then.algorithm == usual.algorithm);
    CHECK(then.cut == usual.cut);
    ++seen.stayed;
    seen.only_exact += exact_then.algorithm->expects_late();
    return;
  }
  CHECK(usual.algorithm->bits != Bits::own);
  CHECK(then.algorithm->bits == usual.algorithm->bits);
  CHECK(then.algorithm->by_nodes() == usual.algorithm->by_nodes());
  CHECK(exact_then.algorithm->expects_late());
  if (then.algorithm->bits == Bits::by_ring) {
    CHECK(then.cut.segments == usual.cut.segments);   // each is a ring
    CHECK(then.cut.window == usual.cut.segments);     // all are under way before the late one comes
    ++seen.rings;
  } else {
    ++seen.in_rank_order;
  }
}

std::string_view name_of_choice(const Problem& p, const ChoiceInputs& now) {
  return choose(p, now).algorithm->name;
}

}  // namespace

TEST_CASE("late: with fewer than four ranks or nodes nobody can be late") {
  for (int ranks : {2, 3})
    for (std::size_t bytes = 4096; bytes <= (64u << 20); bytes *= 4)
      for (const Collective c : {Collective::allreduce, Collective::reduce}) {
        Problem p{.collective = c, .ranks = ranks, .late = {1}, .fast = true};
        CHECK(!choose(p, network(1e-5, bytes)).algorithm->expects_late());
        for (int rank = 0; rank < 2 * ranks; ++rank) p.nodes.push_back(rank / 2);
        p.ranks = 2 * ranks;
        CHECK(!choose(p, network(1e-5, bytes)).algorithm->expects_late());
      }
}

TEST_CASE("late: on nodes stable keeps the bits of multilane, and only late nodes change that") {
  Problem p{.collective = Collective::allreduce, .ranks = 8, .nodes = {0, 0, 1, 1, 2, 2, 3, 3}};
  ChoiceInputs now = network(1e-5, 4u << 20);
  now.machine.ranks_per_node = 2;
  CHECK(name_of_choice(p, now) == "multilane");
  p.late = {5};
  CHECK(name_of_choice(p, now) == "multilane_tail_as_ring");
  p.late = {5, 4};   // of the same node
  CHECK(name_of_choice(p, now) == "multilane_tail_as_ring");
  p.late = {5, 2};   // two of four nodes
  CHECK(name_of_choice(p, now) == "multilane");
  p.late = {5};
  p.fast = true;   // its segments hide the messages inside the nodes
  CHECK(name_of_choice(p, now) == "multilane_tail_as_ring");
  p.fast = false;
  p.commutative = false;   // operands in order
  CHECK(name_of_choice(p, now) == "multilane_tail_direct");
  p.late.clear();
  CHECK(name_of_choice(p, now) == "multilane_direct");
}

TEST_CASE("late: stable goes over only to the sums that are usual, in the same order") {
  Seen seen;
  for (const Collective c : {Collective::allreduce, Collective::reduce})
    for (bool commutative : {true, false})
      for (int ranks : {4, 6, 8, 12, 16, 32})
        for (std::size_t bytes = 4096; bytes <= (64u << 20); bytes *= 4)
          for (double alpha_s = 1e-7; alpha_s < 1e-3; alpha_s *= 1.3)
            look({.collective = c, .ranks = ranks, .commutative = commutative},
                 network(alpha_s, bytes), seen);
  MESSAGE(seen.rings, " go over as rings, ", seen.in_rank_order, " in rank order; ", seen.stayed,
          " stay, of which exact sums go over in ", seen.only_exact);
  CHECK(seen.rings > 0);
  CHECK(seen.in_rank_order > 0);
  CHECK(seen.only_exact > 0);
}
