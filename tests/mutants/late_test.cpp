// Broken schedules of algorithms that expect late ranks: what a late rank gives is lost, added
// twice, or kept in another's place; a sum is told before it is there.
#include <doctest/doctest.h>

#include "coll/registry.hpp"
#include "world/mutate.hpp"
#include "world/worlds.hpp"

using namespace paceline;
using namespace paceline::test;

namespace {

struct Origin {
  std::string name;
  World world;
  std::vector<int> late;
};

std::vector<Origin> origins() {
  std::vector<Origin> all;
  for (const Algorithm* a : registry()) {
    if (!a->expects_late()) continue;
    for (int p = 3; p <= by_length(4, 5, 6); ++p)
      for (const std::vector<int>& late : {std::vector{1}, std::vector{p - 1, 0}}) {
        Shape shape{.collective = a->collective, .ranks = p,
                    .cut = {.segments = 1, .window = 1, .knobs = {.blocks = 2}}};
        shape.late = late;
        if (a->by_nodes())
          for (int rank = 0; rank < p; ++rank) shape.nodes.push_back(rank < 3 ? rank : 1);
        all.push_back({describe(*a, shape), make_world(*a, shape), late});
      }
  }
  return all;
}

// Breaks every origin in one way at every place, and has each mutant rejected.
template <class Break>
void reject_all(const char* name, bool (*of)(Collective), Break&& mutants_of) {
  int mutants = 0;
  for (const Origin& origin : origins()) {
    if (!of(origin.world.front().problem.collective)) continue;
    CHECK_MESSAGE(verify(origin.world), origin.name);
    int here = 0;
    for (const Mutant& mutant : mutants_of(origin)) {
      CHECK_MESSAGE(!verify(mutant.world), origin.name, ": ", mutant.what, " goes unnoticed");
      ++here;
    }
    CHECK_MESSAGE(here > 0, origin.name, ": no mutant");
    mutants += here;
  }
  MESSAGE(name, ": ", mutants, " mutants rejected");
}

bool any(Collective) { return true; }

bool is_late(const Origin& origin, int rank) {
  return std::find(origin.late.begin(), origin.late.end(), rank) != origin.late.end();
}

// A mutant for every message that a late rank gives or hears.
template <class Change>
Mutants at_messages(const Origin& origin, const char* name, Kind kind, Change&& change) {
  Mutants out;
  for (int r = 0; r < static_cast<int>(origin.world.size()); ++r) {
    const Schedule& s = origin.world[std::size_t(r)];
    for (std::uint32_t i = 0; i < s.steps.size(); ++i)
      if (s.steps[i].kind == kind && (is_late(origin, r) || is_late(origin, s.steps[i].peer)))
        out.push_back({name + at(r, i, s), changed(origin.world, r, i, change)});
  }
  return out;
}

}  // namespace

TEST_CASE("mutants: what a late rank gives or hears gets lost") {
  for (Kind kind : {Kind::send, Kind::recv})
    reject_all("lost message", any, [&](const Origin& origin) {
      return at_messages(origin, "lost message", kind, erase);
    });
}

TEST_CASE("mutants: what a late rank gives is added twice, or something else in its place") {
  reject_all("added twice", has_op, [](const Origin& origin) {
    return everywhere(origin.world, "added twice", is(Kind::reduce),
                      [](Schedule& s, std::uint32_t i) {
                        Step& step = s.steps[i];   // target, then the sources
                        s.segments[step.first + step.segments - 1] = s.segments[step.first + 1];
                      });
  });
  reject_all("left out", has_op, [](const Origin& origin) {
    return everywhere(
        origin.world, "left out",
        [](const Schedule&, const Step& step) { return step.kind == Kind::reduce; },
        [](Schedule& s, std::uint32_t i) { --s.steps[i].segments; });
  });
}

TEST_CASE("mutants: what a late rank gives lands in another's slot") {
  reject_all("wrong slot", has_op, [](const Origin& origin) {
    return everywhere(
        origin.world, "wrong slot",
        [](const Schedule& s, const Step& step) {
          return step.kind == Kind::recv && s.slots.size() > 1 &&
                 s.begin(step)->space == Space::scratch;
        },
        [](Schedule& s, std::uint32_t i) {
          Segment& slot = s.segments[s.steps[i].first];
          slot.slot = (slot.slot + 1) % static_cast<int>(s.slots.size());
        });
  });
}

TEST_CASE("mutants: a sum is told before it is complete") {
  reject_all("told too early", has_op, [](const Origin& origin) {
    Mutants out;
    for (int r = 0; r < static_cast<int>(origin.world.size()); ++r) {
      const Schedule& s = origin.world[std::size_t(r)];
      for (std::uint32_t i = 0; i + 1 < s.steps.size(); ++i)
        if (s.steps[i].kind == Kind::finish && s.steps[i + 1].kind == Kind::send)
          out.push_back({"told too early" + at(r, i, s),
                         changed(origin.world, r, i, [](Schedule& t, std::uint32_t step) {
                           std::swap(t.steps[step], t.steps[step + 1]);
                         })});
    }
    if (out.empty()) out = everywhere(origin.world, "lost finish", is(Kind::finish), erase);
    return out;
  });
}
