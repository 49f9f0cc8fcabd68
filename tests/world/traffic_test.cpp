// The traffic of every algorithm that sends nothing, compared with docs/design/0020-traffic.md.
//
// In units of the message n, of all r ranks of a node together, B blocks each; alltoall: n is what
// one rank sends.
#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "base/str.hpp"
#include "coll/registry.hpp"
#include "coll/staged.hpp"
#include "simulate/traffic.hpp"
#include "world/worlds.hpp"

using namespace paceline;
using namespace paceline::test;

namespace {

struct Claim {
  double copy_in = 0, reduce = 0, copy_out = 0, copy = 0;
  double again = 0;     // of all that is read: just made
  double peers = 0;     // of all that is moved: in peers' stages and buffers
  double signals = 0, syncs = 0;
};

using Formula = Claim (*)(double r, double blocks, bool in_place);

double own(bool in_place) { return in_place ? 0 : 2; }   // from the input to the output

Claim to_or_from_the_root(double r, double b, bool in_place) {
  const double all = (r - 1) / r, back = std::fmax(0, b - kAhead);
  return {2 * all, 0, 2 * all, own(in_place) / r, 0, all, (b + back) * (r - 1), b};
}

// Traffic with two ranks and more.
const std::map<std::string, Formula> kClaims = {
    {"allreduce/one_shot", [](double r, double, bool) -> Claim {
       return {2 * r, r * (r + 1), 0, 0, 0, r * (r - 1), r * (r - 1), 1};
     }},
    {"allreduce/two_shot", [](double r, double b, bool) -> Claim {
       return {2 * r, r + 1, 2 * (r - 1), 0, 1, 2 * (r - 1), (b + 1) * r * (r - 1), b + 1};
     }},
    {"allreduce/symmetric", [](double r, double, bool) -> Claim {
       return {0, r + 1, 0, 2 * (r - 1), r - 1, 2 * (r - 1), 2 * r * (r - 1), 2};
     }},
    {"allreduce/dynamic_leader", [](double r, double, bool) -> Claim {
       return {2 * r, 3 * (r - 1), 2 * (r - 1), 0, 1, 2 * (r - 1), 2 * (r - 1), r - 1};
     }},
    {"allreduce/arrival_leader", [](double r, double, bool) -> Claim {
       const double in = r > 2 ? 2 * (r - 1) : 4;
       return {in, 3 * (r - 1), 2 * (r - 1), 0, 1, 2 * (r - 1), 2 * (r - 1), r - 1};
     }},
    {"allreduce/arrival_chain", [](double r, double b, bool) -> Claim {
       const double waits = r > 2 ? 2 * b : b;
       return {4, 3 * (r - 1), 2 * (r - 1), 0, 1, 2 * (r - 1), 2 * b * (r - 1), waits};
     }},
    {"reduce/arrival_chain", [](double r, double b, bool) -> Claim {   // the root comes last
       return {2, 3 * (r - 1), 0, 0, 0, r - 1, b * (r - 1), b};
     }},
    {"broadcast/staged", [](double r, double b, bool) -> Claim {
       const double back = std::fmax(0, b - kAhead);
       return {2, 0, 2 * (r - 1), 0, 0, r - 1, (b + back) * (r - 1), b};
     }},
    {"broadcast/symmetric", [](double r, double, bool) -> Claim {
       return {0, 0, 0, 2 * (r - 1), 0, r - 1, 4 * (r - 1), r};
     }},
    {"broadcast/single_copy", [](double r, double, bool) -> Claim {
       return {0, 0, 0, 2 * (r - 1), 0, r - 1, 4 * (r - 1), r};
     }},
    {"reduce/staged", [](double r, double b, bool) -> Claim {
       const double back = std::fmax(0, b - kAhead);
       return {2 * (r - 1), r + 1, 0, 0, 0, r - 1, (b + back) * (r - 1), b};
     }},
    {"reduce/two_shot", [](double r, double b, bool) -> Claim {
       const double all = (r - 1) / r;
       return {2 * (r - 1), r + 1, 2 * all, 0, 0, r - 1 + all, (b + 1) * r * (r - 1), b + 1};
     }},
    {"reduce_scatter/staged", [](double r, double b, bool) -> Claim {
       return {2 * (r - 1), r + 1, 0, 0, 0, r - 1, b * r * (r - 1), b};
     }},
    {"reduce_scatter/symmetric", [](double r, double, bool) -> Claim {
       return {0, r + 1, 0, 0, 0, r - 1, 2 * r * (r - 1), 2};
     }},
    {"allgather/staged", [](double r, double b, bool in_place) -> Claim {
       return {2, 0, 2 * (r - 1), own(in_place), 0, r - 1, b * r * (r - 1), b};
     }},
    {"allgather/symmetric", [](double r, double, bool in_place) -> Claim {
       return {0, 0, 0, 2 * (r - 1) + own(in_place), 0, r - 1, 2 * r * (r - 1), 2};
     }},
    {"alltoall/staged", [](double r, double b, bool in_place) -> Claim {
       return {2 * (r - 1), 0, 2 * (r - 1), own(in_place), 0, r - 1, b * r * (r - 1), b};
     }},
    {"alltoall/symmetric", [](double r, double, bool) -> Claim {
       return {0, 0, 0, 2 * r, 0, r - 1, 2 * r * (r - 1), 2};
     }},
    {"gather/staged", to_or_from_the_root},
    {"scatter/staged", to_or_from_the_root},
    {"barrier/staged", [](double r, double, bool) -> Claim {
       return {.signals = r * (r - 1), .syncs = 1};
     }},
};

// Traffic of one rank alone, which copies nothing for peers, except in one_shot, which is never
// chosen for it.
Claim alone(const std::string& name, const Shape& shape) {
  Claim claim;
  if (name == "allreduce/one_shot") claim.copy_in = 2;
  if (shape.collective != Collective::broadcast && shape.collective != Collective::barrier)
    claim.copy = own(shape.in_place);
  return claim;
}

Claim claim_of(const std::string& name, const Shape& shape) {
  if (shape.ranks == 1) return alone(name, shape);
  return kClaims.at(name)(shape.ranks, std::fmax(1, shape.cut.knobs.blocks), shape.in_place);
}

std::string differs(const Traffic& got, const Claim& claim, double n) {
  const auto wrong = [&](const char* what, std::uint64_t bytes, double times, double unit) {
    return double(bytes) == std::round(times * unit)
               ? std::string()
               : str(what, ": ", bytes, " instead of ", times * unit, "; ");
  };
  const Moved all = got.total();
  Moved at_home;
  for (const Moved& moved : got.by_home) at_home += moved;
  const auto peers = got.of(Home::peer_stage).total() + got.of(Home::peer_buffer).total();
  return wrong("copy in", got.of(Pass::copy_in).total(), claim.copy_in, n) +
         wrong("reduce", got.of(Pass::reduce).total(), claim.reduce, n) +
         wrong("copy out", got.of(Pass::copy_out).total(), claim.copy_out, n) +
         wrong("copy", got.of(Pass::copy).total(), claim.copy, n) +
         wrong("again", all.again, claim.again, n) + wrong("peers", peers, claim.peers, n) +
         wrong("signals", got.signals, claim.signals, 1) +
         wrong("syncs", got.syncs, claim.syncs, 1) + (at_home == all ? "" : "homes; ");
}

// Returns elements per unit that the world's blocks divide, and others if the sum over all ranks
// does not depend on rounding.
std::vector<std::size_t> counts(const std::string& name, const World& world) {
  const auto even = 3 * std::size_t(world[0].cuts);
  if (name == "reduce/two_shot") return {0, even};   // the root's slice is left out
  return {0, 1, even, 1009};
}

template <class Each>
void for_load_store(Each&& each) {
  for (const Algorithm* a : registry()) {
    if (!a->is_load_store()) continue;
    const std::string name = str(name_of(a->collective), "/", a->name);
    for (int ranks = 1; ranks <= 8; ++ranks)
      for (const int blocks : a->takes.blocks ? std::vector{1, 2, 5} : std::vector{0})
        for (const bool in_place : {false, true}) {
          Shape shape{.collective = a->collective, .ranks = ranks, .in_place = in_place};
          shape.root = has_root(a->collective) ? ranks - 1 : 0;
          shape.cut.knobs.blocks = blocks;
          if (accepts(*a, shape)) each(name, shape, make_world(*a, shape));
        }
  }
}

std::string checked(const std::string& name, const Shape& shape, const World& world,
                    std::size_t count) {
  const double n = 4.0 * double(count) * world[0].units;
  return differs(traffic_of(world, count, 4), claim_of(name, shape), n);
}

}  // namespace

TEST_CASE("traffic: the formulas of the page, for 1 to 8 ranks") {
  std::map<std::string, int> seen;
  for_load_store([&](const std::string& name, const Shape& shape, const World& world) {
    REQUIRE_MESSAGE(kClaims.count(name) == 1, name, " needs a row, and one in the page");
    for (const std::size_t count : counts(name, world)) {
      ++seen[name];
      const std::string fault = checked(name, shape, world, count);
      CHECK_MESSAGE(fault.empty(), name, ", ", shape.ranks, " ranks, ", shape.cut.knobs.blocks,
                    " blocks, ", count, " elements: ", fault);
    }
  });
  CHECK(seen.size() == kClaims.size());
}

// The counts must reveal a step that is left out, done twice, or reads its own memory instead of a
// peer's.
TEST_CASE("traffic: mutants are noticed") {
  int mutants = 0;
  for_load_store([&](const std::string& name, const Shape& shape, const World& world) {
    if (shape.ranks != 3 || shape.cut.knobs.blocks > 2) return;
    const std::size_t count = 3 * std::size_t(world[0].cuts);
    for (std::size_t rank = 0; rank < world.size(); ++rank)
      for (std::size_t step = 0; step < world[rank].steps.size(); ++step) {
        const Kind kind = world[rank].steps[step].kind;
        if (kind == Kind::finish || kind == Kind::wait) continue;   // verify sees to the waits
        World fewer = world, more = world;
        const auto at = [step](World& w, std::size_t r) { return w[r].steps.begin() + long(step); };
        fewer[rank].steps.erase(at(fewer, rank));
        more[rank].steps.insert(at(more, rank), world[rank].steps[step]);
        CHECK(!checked(name, shape, fewer, count).empty());
        CHECK(!checked(name, shape, more, count).empty());
        mutants += 2;
      }
    for (std::size_t rank = 0; rank < world.size(); ++rank)
      for (std::size_t i = 0; i < world[rank].segments.size(); ++i) {
        if (world[rank].segments[i].owner == kOwn) continue;
        World home = world;
        home[rank].segments[i].owner = kOwn;
        CHECK(!checked(name, shape, home, count).empty());
        ++mutants;
      }
  });
  CHECK(mutants > 500);
}
