// Broken schedules, each of which verify() has to reject: a check that cannot fail proves nothing.
#include <doctest/doctest.h>

#include <map>

#include "coll/algorithms.hpp"
#include "verify/form.hpp"
#include "world/mutate.hpp"
#include "world/worlds.hpp"

using namespace paceline;
using namespace paceline::test;

namespace {

struct Tally {
  int mutants = 0, missed_by_shake = 0, small = 0, wrong = 0, tame = 0;
};

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

// Every mutant is rejected by a message that a person can act on. Whatever exploring all orders
// finds, verify must have found. The other way round it may be stricter: it wants two steps ordered
// by the rank's own edges, even if by the way of other ranks they always happen to be.
void reject(const Mutants& mutants, const std::string& origin, Tally& tally) {
  const auto seeds = by_length<std::uint64_t>(5, 50, 50);
  for (const Mutant& mutant : mutants) {
    const std::string what = origin + ": " + mutant.what;
    const Verdict verdict = verify(mutant.world);
    CHECK_MESSAGE(!verdict, what, " goes unnoticed");
    CHECK_MESSAGE((has(verdict.fault, "rank ") && has(verdict.fault, "step ")), what, ": ",
                  verdict.fault);
    ++tally.mutants;
    if (!check_form(mutant.world)) continue;  // what is not a world cannot be run
    bool shaken = false;
    for (std::uint64_t seed = 0; seed < seeds && !shaken; ++seed)
      shaken = !shake(mutant.world, seed);
    tally.missed_by_shake += !shaken;
    if (shaken || mutant.world.size() > 3) continue;
    const Exploration all = explore(mutant.world, by_length<std::size_t>(100, 1000, 20000));
    ++tally.small;
    tally.wrong += !all.verdict;
    tally.tame += all.complete && all.verdict;
    if (all.complete && all.verdict) CHECK_MESSAGE(has(verdict.fault, "hazards"), what);
  }
}

void report(const std::string& name, const Tally& t) {
  CHECK_MESSAGE(t.mutants > 0, name, ": no mutant");
  MESSAGE(name, ": ", t.mutants, " mutants rejected; random orders miss ", t.missed_by_shake,
          "; of these, all orders were tried of ", t.small, " small ones: wrong in one ", t.wrong,
          ", right in all ", t.tame, ", too many to tell ", t.small - t.wrong - t.tame);
}

struct Origin {
  std::string name;
  World world;
};

std::vector<Origin> origins(std::initializer_list<const Algorithm*> algorithms) {
  std::vector<Origin> out;
  for (const Algorithm* a : algorithms)
    for (int p = 2; p <= by_length(4, 5, 8); ++p)
      for (bool in_place : {false, true})
        for (bool fused : {false, true}) {
          if (fused && !has_op(a->collective)) continue;
          Shape shape;
          shape.collective = a->collective;
          shape.ranks = p;
          shape.in_place = in_place;
          shape.fused = fused;
          out.push_back({describe(*a, shape), make_world(*a, shape)});
        }
  return out;
}

// Breaks all origins in one way. Each is proven before.
template <class Break>
void reject_all(const std::string& name, const std::vector<Origin>& all, Break&& mutants_of) {
  Tally tally;
  for (const Origin& origin : all) {
    CHECK_MESSAGE(verify(origin.world), origin.name);
    reject(mutants_of(origin.world), origin.name, tally);
  }
  report(name, tally);
}

const std::initializer_list<const Algorithm*> kSums{&allreduce_ring, &allreduce_recursive_doubling,
                                                    &allreduce_binomial, &reduce_scatter_ring,
                                                    &reduce_binomial};
const std::initializer_list<const Algorithm*> kTalkers{
    &allreduce_ring,     &allreduce_recursive_doubling,
    &broadcast_binomial, &allgather_ring,
    &alltoall_pairwise,  &scatter_linear};

// In the first round nobody sends before it has received.
Mutants receive_before_send(const World& world) {
  World mutant = world;
  for (Schedule& s : mutant) {
    const auto send = std::find_if(s.steps.begin(), s.steps.end(),
                                   [](const Step& x) { return x.kind == Kind::send; });
    const auto recv = std::find_if(s.steps.begin(), s.steps.end(), [](const Step& x) {
      return x.kind == Kind::recv || x.kind == Kind::recv_reduce;
    });
    if (send == s.steps.end() || recv < send) return {};  // where some already wait, no circle
    std::rotate(send, recv, recv + 1);
    derive_edges(s);
    std::vector<Edge> edges = edges_of(s);
    const auto first = static_cast<std::uint32_t>(send - s.steps.begin());
    edges.emplace_back(first, first + 1);
    set_edges(s, std::move(edges));
  }
  return {{"round reordered", mutant}};
}

}  // namespace

TEST_CASE("mutants: a lost edge") {
  reject_all("lost edge", origins(kSums), lost_edges);
  reject_all("lost edge, data only",
             origins({&allgather_ring, &alltoall_pairwise, &broadcast_binomial, &broadcast_chain}),
             lost_edges);
}

TEST_CASE("mutants: a block in the place of another") {
  const auto fits = [](const Schedule& s, const Step& step) {
    return step.kind != Kind::finish && step.segments > 0 && s.begin(step)->blocks < s.blocks();
  };
  for (std::uint32_t which : {0u, 1u})
    reject_all(which == 0 ? "swapped block" : "wrong source",
               origins({&allreduce_ring, &allgather_ring, &alltoall_pairwise}),
               [&](const World& world) {
                 return everywhere(
                     world, "wrong block",
                     [&](const Schedule& s, const Step& step) {
                       return fits(s, step) && which < step.segments;
                     },
                     [&](Schedule& s, std::uint32_t i) {
                       Segment& segment = s.segments[s.steps[i].first + which];
                       segment.first = (segment.first + 1) % s.blocks();
                       if (segment.space == Space::scratch) segment.origin = segment.first;
                     });
               });
}

TEST_CASE("mutants: a contribution twice, or not at all") {
  const auto reduces = [](const Schedule&, const Step& step) { return step.kind == Kind::reduce; };
  reject_all("double sum", origins(kSums), [&](const World& world) {
    return everywhere(world, "double sum", reduces, [](Schedule& s, std::uint32_t i) {
      s.segments[s.steps[i].first + 2] = s.segments[s.steps[i].first + 1];
    });
  });
  reject_all("lost reduce", origins(kSums),
             [&](const World& world) { return everywhere(world, "lost reduce", reduces, erase); });
  reject_all("left out", origins(kSums), [&](const World& world) {
    return everywhere(world, "left out", reduces,
                      [](Schedule& s, std::uint32_t i) { --s.steps[i].segments; });
  });
}

TEST_CASE("mutants: a message less") {
  for (Kind kind : {Kind::send, Kind::recv, Kind::recv_reduce})
    reject_all(str("missing ", name_of(kind)),
               origins({&allreduce_ring, &allreduce_recursive_doubling}),
               [&](const World& world) { return everywhere(world, "missing", is(kind), erase); });
}

TEST_CASE("mutants: a wrong segment, a wrong peer, a wrong number") {
  reject_all("wrong segment", origins(kTalkers), [](const World& world) {
    return everywhere(world, "wrong buffer", is(Kind::recv), [](Schedule& s, std::uint32_t i) {
      Segment& segment = s.segments[s.steps[i].first];
      const bool to_input = segment.space == Space::output;
      segment.space = segment.like = to_input ? Space::input : Space::output;
      segment.slot = segment.origin = 0;
    });
  });
  reject_all("wrong peer", origins(kTalkers), [](const World& world) {
    return everywhere(world, "wrong peer", is(Kind::send), [](Schedule& s, std::uint32_t i) {
      s.steps[i].peer = (s.steps[i].peer + 1) % s.problem.ranks;
    });
  });
  reject_all("wrong number", origins(kTalkers), [](const World& world) {
    return everywhere(world, "wrong number", is(Kind::recv),
                      [](Schedule& s, std::uint32_t i) { ++s.steps[i].seq; });
  });
}

TEST_CASE("mutants: a sum that is not, or twice, finished") {
  reject_all("lost finish", origins(kSums), [](const World& world) {
    return everywhere(world, "lost finish", is(Kind::finish), erase);
  });
  reject_all("finished twice", origins(kSums), [](const World& world) {
    return everywhere(world, "finished twice", is(Kind::finish), repeat);
  });
}

TEST_CASE("mutants: scratch is used again too early") {
  Tally tally;
  for (const Algorithm* a : {&allreduce_ring, &allreduce_recursive_doubling, &reduce_scatter_ring})
    for (int window : {1, 2})
      for (int p = 3; p <= 4; ++p) {
        const Shape shape{.collective = a->collective, .ranks = p,
                          .cut = {.segments = 4, .window = window}};
        reject(lost_windows(make_world(*a, shape)), describe(*a, shape), tally);
      }
  report("lost window", tally);
}

TEST_CASE("mutants: everybody receives before anybody sends") {
  reject_all("reordered round",
             origins({&allreduce_ring, &allreduce_recursive_doubling, &allgather_ring,
                      &alltoall_pairwise}),
             receive_before_send);
}

TEST_CASE("mutants: a signal less") {
  std::vector<Origin> barriers;
  for (int p = 2; p <= 8; ++p) {
    const Shape shape{.collective = Collective::barrier, .ranks = p};
    barriers.push_back(
        {describe(barrier_dissemination, shape), make_world(barrier_dissemination, shape)});
  }
  reject_all("barrier without a signal", barriers, lost_signals);
  std::vector<Origin> shared;
  for (int p = 2; p <= 4; ++p)
    for (Collective c : {Collective::allreduce, Collective::broadcast})
      shared.push_back({str("shared ", name_of(c), " ", p), shared_world(c, p)});
  reject_all("shared memory without a signal", shared, lost_signals);
  std::vector<Origin> attached;
  for (int p = 2; p <= 4; ++p)
    for (int root : {0, p - 1}) {
      const Shape shape{.collective = Collective::broadcast, .ranks = p, .root = root};
      World world = make_world(broadcast_single_copy, shape);
      for (Schedule& s : world) s.problem.one_node = false;   // else its reading finds them first
      attached.push_back({describe(broadcast_single_copy, shape), std::move(world)});
    }
  reject_all("memory of others without a signal", attached, lost_signals);
}

// What cannot be seen in one run: a slot read as if it held other, perhaps longer, blocks.
TEST_CASE("mutants: a slot that changes its shape between writing and reading") {
  Problem problem;
  problem.ranks = 2;
  const auto copy_through = [&](int shape_of_reader) {
    World world = by_hand(problem, 2, [&](const Problem& pb, Builder& b) {
      shared_allreduce(pb, b);
      const Segment slot = b.scratch(b.output(0));
      b.copy(b.output(0), slot);
      b.copy(b.as(slot, b.output(shape_of_reader)), b.output(shape_of_reader));
    });
    for (Schedule& s : world) {   // what no derived edge says: the reader waits for the writer
      std::vector<Edge> edges = edges_of(s);
      const auto reader = static_cast<std::uint32_t>(s.steps.size()) - 1;
      edges.emplace_back(reader - 1, reader);
      set_edges(s, std::move(edges));
    }
    return world;
  };
  CHECK(verify(copy_through(0)));
  const Verdict verdict = verify(copy_through(1));
  CHECK_MESSAGE(has(verdict.fault, "copies a block that no rank wrote"), verdict.fault);
}
