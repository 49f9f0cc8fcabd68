// The contract's tables, against which everything else is checked.
#include "ir/contract.hpp"

#include <doctest/doctest.h>

#include "ir/algorithm.hpp"

using namespace paceline;

namespace {

Schedule schedule(Collective collective, int ranks, int rank, bool in_place = false) {
  Schedule s;
  s.problem.collective = collective;
  s.problem.ranks = ranks;
  s.problem.rank = rank;
  s.problem.root = 1;
  s.problem.in_place = in_place;
  s.units = units_of(s.problem);
  return s;
}

using State = std::optional<Value> (*)(const Schedule&, Space, int);

// One word per unit: "02" contributions of ranks 0 and 2, "*" a finished sum of all, "." nothing.
std::string row(const Schedule& s, State state, Space space) {
  std::string out;
  for (int unit = 0; unit < s.units; ++unit) {
    const std::optional<Value> value = state(s, space, unit * s.cuts);
    out += unit > 0 ? " " : "";
    if (!value) out += ".";
    else if (value->finished) out += value->from == RankSet::all(s.problem.ranks) ? "*" : "!";
    else
      for (int r = 0; r < s.problem.ranks; ++r)
        if (value->from.has(r)) out += std::to_string(r);
  }
  return out;
}

}  // namespace

TEST_CASE("contract: sets of ranks, of more than one word too") {
  RankSet set(130);
  CHECK(set.lowest() == -1);
  CHECK(set.highest() == -1);
  for (int r : {5, 64, 129}) set.add(r);
  CHECK(set.has(64));
  CHECK(!set.has(65));
  CHECK(set.lowest() == 5);
  CHECK(set.highest() == 129);
  CHECK(set.meets(RankSet::one(130, 129)));
  CHECK(!set.meets(RankSet::one(130, 128)));
  CHECK(set.key() != RankSet::one(130, 5).key());
  set |= RankSet::all(130);
  CHECK(set == RankSet::all(130));
  CHECK(RankSet::one(4, 1).key() != RankSet::one(4, 2).key());
}

TEST_CASE("contract: what every buffer of rank 2 of 3 holds, the root being rank 1") {
  const struct {
    Collective collective;
    const char *input, *output, *after;   // of the output
  } rows[] = {
      {Collective::allreduce, "2", ".", "*"},
      {Collective::reduce, "2", ".", "."},
      {Collective::broadcast, ".", ".", "1"},
      {Collective::reduce_scatter, "2 2 2", ". . .", ". . *"},
      {Collective::allgather, ". . 2", ". . .", "0 1 2"},
      {Collective::gather, ". . 2", ". . .", ". . ."},
      {Collective::scatter, ". . .", ". . .", ". . 1"},
      {Collective::alltoall, "2 2 2", ". . .", "0 1 2"},
      {Collective::barrier, ".", ".", "."},
  };
  for (const auto& wanted : rows) {
    const Schedule s = schedule(wanted.collective, 3, 2);
    const std::string name(name_of(wanted.collective));
    CHECK_MESSAGE(row(s, before, Space::input) == wanted.input, name);
    CHECK_MESSAGE(row(s, before, Space::output) == wanted.output, name);
    CHECK_MESSAGE(row(s, after, Space::output) == wanted.after, name);
  }
}

TEST_CASE("contract: the root has, or gets, what the others do not") {
  CHECK(row(schedule(Collective::reduce, 3, 1), after, Space::output) == "*");
  CHECK(row(schedule(Collective::broadcast, 3, 1), before, Space::output) == "1");
  CHECK(row(schedule(Collective::gather, 3, 1), after, Space::output) == "0 1 2");
  CHECK(row(schedule(Collective::scatter, 3, 1), before, Space::input) == "1 1 1");
}

TEST_CASE("contract: in place, both buffers are the longer one") {
  const Schedule sum = schedule(Collective::allreduce, 3, 2, true);
  CHECK(row(sum, before, Space::input) == ".");
  CHECK(row(sum, before, Space::output) == "2");
  CHECK(row(sum, after, Space::output) == "*");
  const Schedule scattered = schedule(Collective::reduce_scatter, 3, 2, true);
  CHECK(row(scattered, before, Space::input) == "2 2 2");
  CHECK(row(scattered, after, Space::input) == ". . *");
  CHECK(row(scattered, after, Space::output) == ". . .");
}

// Blocks have one name exactly if they are equally long for all counts.
TEST_CASE("contract: names of sizes") {
  const auto name = [](const Schedule& s, Space like, int block) {
    Segment segment;
    segment.like = like;
    return size_name(s, segment, block);
  };
  Schedule one = schedule(Collective::alltoall, 3, 1);
  Schedule two = schedule(Collective::alltoall, 3, 2);
  CHECK(name(one, Space::output, 2) == name(two, Space::output, 1));   // all units equally long
  CHECK(name(one, Space::input, 0) == name(one, Space::input, 2));
  one.problem.uneven = two.problem.uneven = true;
  CHECK(name(one, Space::input, 2) == name(two, Space::output, 1));   // what 1 has for 2
  CHECK(name(one, Space::output, 2) != name(two, Space::output, 1));
  CHECK(name(one, Space::input, 0) != name(one, Space::input, 2));
  Schedule three = schedule(Collective::alltoall, 3, 1, true);
  three.problem.uneven = true;
  CHECK(name(three, Space::input, 2) == name(three, Space::output, 2));   // one room for both
  Schedule cut = schedule(Collective::allreduce, 3, 0);
  cut.cuts = 2;
  cut.pipeline = 2;
  for (int a = 0; a < 4; ++a)
    for (int b = 0; b < a; ++b)
      CHECK(name(cut, Space::output, a) != name(cut, Space::output, b));
}
