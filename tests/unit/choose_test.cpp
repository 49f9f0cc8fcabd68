// The choice: there is always one, equal on all ranks, and wishes are met or refused.
#include "tune/choose.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "coll/registry.hpp"
#include "engine/compiled_schedule.hpp"
#include "ir/in_step.hpp"
#include "transport/shm/staging.hpp"

using namespace paceline;

namespace {

Problem problem_of(Collective collective, int ranks) {
  Problem p;
  p.collective = collective;
  p.ranks = ranks;
  return p;
}

std::string print(const Choice& c) {
  const auto& [segments, window, knobs, strict, whole, asked] = c.cut;
  return str(c.algorithm->name, " radix ", knobs.radix, " blocks ", knobs.blocks, " segments ",
             segments, " window ", window, strict ? " in step" : "", whole ? " whole tail" : "");
}

std::string chosen(Collective collective, int ranks, std::size_t bytes, const char* machine) {
  return choose(problem_of(collective, ranks), {bytes, machine_from(machine)}).algorithm->name;
}

std::string error_of(const Overrides& wish, Collective collective = Collective::allreduce) {
  try {
    choose(problem_of(collective, 4), {1 << 20}, wish);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

bool says(const std::string& text, std::initializer_list<const char*> words) {
  for (const char* word : words)
    if (text.find(word) == text.npos) {
      MESSAGE("'", std::string(word), "' is not in: ", text);
      return false;
    }
  return true;
}

}  // namespace

TEST_CASE("choose: every problem is served, alike on all ranks") {
  for (const char* name : {"shm", "edr-100g", "ethernet-10g,ranks_per_node=4", "alpha_us=0"})
    for (int c = 0; c < kCollectives; ++c)
      for (int ranks : {1, 2, 3, 4, 7, 8, 17, 64, 100, 1000})
        for (std::size_t bytes : {0ul, 1ul, 4096ul, 1ul << 20, 1ul << 40})
          for (int flags = 0; flags < 8; ++flags) {
            Problem p = problem_of(static_cast<Collective>(c), ranks);
            p.commutative = !(flags & 1);
            p.uneven = (flags & 2) && units_of(p) > 1;
            p.root = has_root(p.collective) && (flags & 4) ? ranks - 1 : 0;
            const ChoiceInputs now{bytes, machine_from(name)};
            const Choice choice = choose(p, now);
            CAPTURE(print(choice));
            REQUIRE(choice.algorithm != nullptr);
            CHECK(choice.algorithm->collective == p.collective);
            CHECK(!choice.algorithm->rejects(p));
            CHECK(choice.cut.window >= 1);
            CHECK(choice.cut.window <= choice.cut.segments);
            CHECK(choice.cut.segments <= 128);
            CHECK(!choice.why.empty());
            CHECK_NOTHROW(check_knobs(*choice.algorithm, choice.cut.knobs));
            p.rank = ranks - 1;
            CHECK(print(choose(p, now)) == print(choice));
          }
}

TEST_CASE("choose: what is known of some machines") {
  using enum Collective;
  for (const char* machine : {"shm", "edr-100g"}) {
    CHECK(chosen(allreduce, 2, 8, machine) == "recursive_doubling");
    CHECK(chosen(allreduce, 2, 64 << 20, machine) == "ring");
    CHECK(chosen(broadcast, 2, 64 << 20, machine) == "binomial");
    CHECK(chosen(broadcast, 16, 8, machine) == "binomial");
    CHECK(chosen(broadcast, 16, 4 << 20, machine) == "circulant");
    CHECK(chosen(allgather, 16, 64 << 10, machine) == "circulant");
    CHECK(chosen(alltoall, 16, 16 * 64, machine) == "bruck");
    CHECK(chosen(alltoall, 16, 64 << 20, machine) == "pairwise");
    CHECK(chosen(gather, 16, 1024, machine) == "binomial");
    CHECK(chosen(gather, 16, 64 << 20, machine) == "linear");
  }
  CHECK(chosen(allreduce, 16, 64 << 10, "edr-100g") == "rabenseifner");
  CHECK(chosen(allreduce, 15, 64 << 10, "edr-100g") == "circulant");
  CHECK(chosen(allreduce, 16, 4 << 20, "edr-100g") == "rabenseifner");
  // If several ranks share a node's port, neighbours win earlier.
  CHECK(chosen(allreduce, 16, 1 << 20, "edr-100g,ranks_per_node=4") == "ring");
  // Inside a node segments hide nothing; across, they hide the sums.
  const Problem p = problem_of(allreduce, 6);
  CHECK(choose(p, {64 << 20}).cut.segments == 1);
  CHECK(choose(p, {64 << 20, usual_machine(1)}).cut.segments > 1);
  // Only the root knows the counts.
  Problem uneven = problem_of(gather, 16);
  uneven.uneven = true;
  CHECK(choose(uneven, {0}).algorithm->name == std::string("linear"));
  // Operands stay in rank order.
  Problem ordered = problem_of(allreduce, 16);
  ordered.commutative = false;
  CHECK(choose(ordered, {64 << 20}).algorithm->name == std::string("direct"));
}

TEST_CASE("choose: the number of blocks is the best one") {
  for (int p : {4, 8, 16})
    for (std::size_t n : {1ul << 20, 16ul << 20}) {
      const Machine m = machine_from("edr-100g");
      const Choice choice = choose(problem_of(Collective::broadcast, p), {n, m});
      REQUIRE(choice.algorithm->name == std::string("circulant"));
      const double q = std::bit_width(static_cast<unsigned>(p)) - 1;
      const double best = std::sqrt((q - 1) * double(n) * m.across.beta_s_per_byte /
                                    m.across.alpha_s);
      CHECK(choice.cut.knobs.blocks >= best / 1.5);
      CHECK(choice.cut.knobs.blocks <= best * 1.5);
    }
}

TEST_CASE("choose: what a link is like decides between nodes") {
  using enum Collective;
  // Figures of a probe at 200 Mbit/s: most of alpha passes in flight.
  const std::string slow = "alpha_us=170,latency_us=163,gbit_per_s=0.195,short_kib=8";
  const std::string announced = slow + ",long_gbit_per_s=0.13", later = announced + ",long_kib=32";
  const auto choice = [](Collective collective, int ranks, std::size_t bytes,
                         const std::string& machine) {
    return choose(problem_of(collective, ranks), {bytes, machine_from(machine)});
  };
  for (int p : {8, 9}) {
    for (const std::size_t mib : {1u, 4u, 16u, 64u}) {
      for (const Collective c : {allreduce, reduce_scatter, allgather}) {
        const Choice one = choice(c, p, mib << 20, slow), cut = choice(c, p, mib << 20, announced);
        CHECK(one.algorithm->name == std::string("ring"));
        CHECK(cut.algorithm->name == std::string("ring"));
        CHECK(one.cut.segments >= 2);
        CHECK(one.cut.segments <= 8);
        // Every message is short enough to need no announcement, and none is shorter than that.
        const auto message = [&](const Choice& one) {
          return (mib << 20) / std::size_t(p * one.cut.segments);
        };
        CHECK(message(cut) <= 8u << 10);
        CHECK(message(cut) > 4u << 10);
        const Choice longer = choice(c, p, mib << 20, later);
        CHECK(message(longer) <= 32u << 10);
        CHECK(message(longer) > 16u << 10);
        CHECK(!longer.cut.whole_tail);
      }
      for (const Collective c : {broadcast, reduce}) {
        const Choice cut = choice(c, p, mib << 20, announced);
        CHECK(cut.algorithm->name == std::string("chain"));
        CHECK((mib << 20) / std::size_t(cut.cut.segments) == 8u << 10);
        CHECK(choice(c, p, mib << 20, slow).algorithm->name == std::string("chain"));
      }
    }
    CHECK(choice(allreduce, p, 1 << 10, slow).algorithm->name != std::string("ring"));
  }
  // Without flight a chain pays alpha for every piece, and rounds in step win.
  CHECK(choice(broadcast, 8, 1 << 20, "alpha_us=170,gbit_per_s=0.195").algorithm->name ==
        std::string("circulant"));
}

TEST_CASE("choose: short calls have few messages where others' messages are in the way") {
  using enum Collective;
  const Machine probed = machine_from(
      "alpha_us=400,latency_us=390,contention_percent=60,gbit_per_s=0.2,short_kib=8,long_kib=32");
  const Machine real = machine_from("alpha_us=400,latency_us=390,gbit_per_s=0.2,short_kib=8");
  // Measured figures of nine nodes with two cores, whose links let 20 KB pass at once.
  const Machine lab = machine_from(
      "alpha_us=60,latency_us=50,alpha_loaded_us=90,contention_percent=60,gbit_per_s=0.2,"
      "short_kib=8,lone_gbit_per_s=2");
  const auto name = [&](Collective collective, int ranks, std::size_t kib) {
    return choose(problem_of(collective, ranks), {kib << 10, probed}).algorithm->name;
  };
  for (int p : {8, 9})
    for (std::size_t kib : {1, 8}) {   // as many messages in threes go a shorter way where p = 9
      CHECK(name(broadcast, p, kib) == std::string("binomial"));
      CHECK(name(reduce, p, kib) == std::string(p == 9 ? "k_nomial" : "binomial"));
    }
  CHECK(name(broadcast, 8, 32) == std::string("scatter_circulant"));
  CHECK(name(broadcast, 9, 32) == std::string("scatter_circulant"));
  CHECK(name(reduce, 8, 32) == std::string("scatter_gather"));
  CHECK(name(allreduce, 9, 1) == std::string("recursive_doubling"));
  CHECK(name(reduce_scatter, 9, 1) == std::string("recursive_halving"));
  for (std::size_t bytes : {8, 1044, 8208}) {
    CHECK(choose(problem_of(allreduce, 9), {bytes, lab}).algorithm->name ==
          std::string("recursive_doubling"));
    CHECK(choose(problem_of(allreduce, 8), {bytes, lab}).algorithm->name ==
          std::string("recursive_doubling"));
    CHECK(choose(problem_of(reduce_scatter, 9), {bytes, lab}).algorithm->name ==
          std::string("recursive_halving"));
    CHECK(choose(problem_of(broadcast, 9), {bytes, lab}).why == "short: fewest rounds");
  }
  for (const Collective c : {allreduce, reduce_scatter, allgather})
    CHECK(choose(problem_of(c, 9), {32 << 10, lab}).algorithm->name == std::string("circulant"));
  CHECK(choose(problem_of(allreduce, 8), {32 << 10, lab}).algorithm->name ==
        std::string("rabenseifner"));
  CHECK(choose(problem_of(allreduce, 9), {1 << 10, real}).algorithm->name ==
        std::string("recursive_multiplying"));
  CHECK(choose(problem_of(reduce_scatter, 9), {1 << 10, real}).algorithm->name ==
        std::string("circulant"));
}

TEST_CASE("choose: wishes are met") {
  const Problem p = problem_of(Collective::allreduce, 4);
  const ChoiceInputs now{1 << 20};
  CHECK(print(choose(p, now, {"ring"})) == "ring radix 0 blocks 0 segments 1 window 1");
  CHECK(choose(p, now, {"ring"}).why == "asked for");
  CHECK(print(choose(p, now, {"ring", {8}})) == "ring radix 0 blocks 0 segments 8 window 6");
  CHECK(print(choose(p, now, {"ring", {8, 2}})) == "ring radix 0 blocks 0 segments 8 window 2");
  CHECK(print(choose(p, now, {"circulant", {.knobs = {.radix = 3}}})) ==
        "circulant radix 3 blocks 0 segments 1 window 1");
  CHECK(print(choose(p, now, {"dual_root", {.knobs = {.blocks = 5}}})) ==
        "dual_root radix 0 blocks 5 segments 1 window 1");
  CHECK(choose(p, now, {"auto"}).algorithm == choose(p, now).algorithm);
  // Segments named by the caller have fewer blocks each.
  const Problem b = problem_of(Collective::broadcast, 8);
  const ChoiceInputs long_one{64 << 20};
  const int in_one = choose(b, long_one, {"circulant"}).cut.knobs.blocks;
  CHECK(choose(b, long_one, {"circulant", {16}}).cut.knobs.blocks < in_one);
  const Overrides of_4{"ring", {.segment_bytes = 4}};
  for (const auto& [bytes, segments] : {std::pair(8, 2), {9, 3}, {0, 1}, {3, 1}})
    CHECK(choose(p, {std::size_t(bytes)}, of_4).cut.segments == segments);
}

TEST_CASE("choose: bad wishes are refused, with what is right") {
  CHECK(says(error_of({"rong"}), {"'rong'", "ring"}));
  CHECK(says(error_of({"ring", -1}), {"-1 segments", "1 to 65536"}));
  CHECK(says(error_of({"circulant", 0, 0, {.radix = 1}}), {"allreduce/circulant", "radix is 1",
                                                           "2 to 16"}));
  CHECK(says(error_of({"dual_root", 0, 0, {.blocks = 5000}}), {"blocks is 5000", "1 to 4096"}));
  CHECK(says(error_of({"dual_root", 0, 0, {.blocks = -2}}), {"blocks is -2"}));
  CHECK(says(error_of({"ring", 0, 0, {.radix = 3}}),
             {"allreduce/ring", "no radix", "circulant, recursive_multiplying"}));
  CHECK(says(error_of({"", 0, 0, {.radix = 3}}), {"no algorithm is named", "circulant"}));
  CHECK(says(error_of({"linear", 0, 0, {.radix = 2}}, Collective::gather),
             {"no gather has one"}));
  Problem ordered = problem_of(Collective::allreduce, 4);
  ordered.commutative = false;
  CHECK_THROWS_AS(choose(ordered, {8}, {"ring"}), Error);
}

TEST_CASE("in_step: one message after the other each way, and nothing else") {
  Problem p = problem_of(Collective::allreduce, 5);
  const Schedule free = build(find_algorithm(p.collective, "circulant"), p);
  const Schedule strict = in_step(free);
  CHECK(strict.steps.size() == free.steps.size());
  const auto edges = edges_of(strict);
  const auto is_edge = [&](std::uint32_t from, std::uint32_t to) {
    return std::find(edges.begin(), edges.end(), Edge{from, to}) != edges.end();
  };
  int chained = 0;
  for (const Kind kind : {Kind::send, Kind::recv}) {
    int last = -1;
    for (std::uint32_t i = 0; i < strict.steps.size(); ++i) {
      if (strict.steps[i].kind != kind) continue;
      if (last >= 0) CHECK(is_edge(std::uint32_t(last), i));
      chained += last >= 0;
      last = static_cast<int>(i);
    }
  }
  CHECK(chained == 2 * 5);   // six rounds
  CHECK(edges.size() <= edges_of(free).size() + std::size_t(chained));
  for (const Edge& edge : edges_of(free)) CHECK(is_edge(edge.first, edge.second));
}

TEST_CASE("what is chosen for a node fits its stages, however many ranks there are") {
  int staged = 0;
  for (int p : {2, 3, 7, 16, 64, 128, 256})
    for (const Algorithm* a : registry()) {
      if (!a->uses(Access::staging)) continue;
      std::size_t room = stage_bytes(8u << 20, p);
      for (std::size_t count : {1, 33, 5000, 25000}) {
        if (p == 2) room = count == 25000 ? 64u << 10 : room;   // a message that is longer than it
        Problem problem = problem_of(a->collective, p);
        problem.one_node = true;
        const std::size_t units = std::size_t(units_of(problem));
        const Choice choice = choose(problem, {4 * count * units, usual_machine(), room});
        if (!choice.algorithm->uses(Access::staging)) continue;
        ++staged;
        const std::vector<Layout> layouts(std::size_t(p), even_layout(problem, count));
        const auto schedule =
            std::make_shared<Schedule>(build(*choice.algorithm, problem, choice.cut.knobs));
        const CompiledSchedule bound = resolve(schedule, layouts[0], Type::f32, Op::sum, layouts);
        CAPTURE(count);
        CHECK_MESSAGE(bound.scratch_bytes <= room, name_of(a->collective), " ", p);
      }
      // Calls that would need more blocks than signals can count use messages.
      Problem problem = problem_of(a->collective, p);
      problem.one_node = true;
      const Choice choice = choose(problem, {std::size_t{1} << 40, usual_machine(), room});
      CHECK((!choice.algorithm->uses(Access::staging) || choice.cut.knobs.blocks <= 4096));
    }
  CHECK(staged > 100);
}

TEST_CASE("choose: the system copies long broadcasts between two ranks that it lets, no others") {
  const auto chosen_for = [](Collective c, int ranks, std::size_t bytes, bool attached = true) {
    Problem p = problem_of(c, ranks);
    p.one_node = true;
    p.single_copy = attached;
    const ChoiceInputs now{bytes, usual_machine(), stage_bytes(8u << 20, ranks)};
    return std::string(choose(p, now).algorithm->name);
  };
  constexpr std::size_t kFrom = 1u << 20;
  CHECK(chosen_for(Collective::broadcast, 2, kFrom) == "single_copy");
  CHECK(chosen_for(Collective::broadcast, 2, kFrom << 8) == "single_copy");
  CHECK(chosen_for(Collective::broadcast, 2, kFrom - 1) == "staged");
  CHECK(chosen_for(Collective::broadcast, 2, kFrom, false) == "staged");
  CHECK(chosen_for(Collective::broadcast, 3, kFrom) == "staged");
  for (const Algorithm* a : registry())
    for (int ranks : {1, 2, 3, 8})
      if (a->collective != Collective::broadcast || ranks != 2)
        CHECK(chosen_for(a->collective, ranks, kFrom << 4) != "single_copy");
  Problem p = problem_of(Collective::broadcast, 3);
  p.one_node = p.single_copy = true;
  const ChoiceInputs now{100, usual_machine(), stage_bytes(8u << 20, 3)};
  CHECK(choose(p, now, {"single_copy"}).algorithm->uses(Access::single_copy));
  p.single_copy = false;
  CHECK_THROWS_AS(choose(p, now, {"single_copy"}), Error);
  p.single_copy = p.symmetric = true;   // but what all see is copied without help
  CHECK(choose(p, {kFrom, usual_machine(), now.stage_bytes}).algorithm->uses(Access::symmetric));
}

TEST_CASE("choose: by nodes where ranks share them, alike however they are numbered") {
  using enum Collective;
  const auto chosen_for = [](Collective c, std::size_t bytes, std::vector<int> nodes,
                             bool commutative = true, const Overrides& wish = {},
                             bool staging = false) {
    Problem p = problem_of(c, 8);
    p.commutative = commutative;
    p.node_staging = staging;
    p.nodes = std::move(nodes);
    return choose(p, {bytes, machine_from("lab-200mbit,ranks_per_node=2"), 8u << 20}, wish);
  };
  const std::vector<int> none, beside{0, 0, 1, 1, 2, 2, 3, 3}, in_turn{0, 1, 2, 3, 0, 1, 2, 3};
  const auto is = [](const Choice& choice, const char* name) {
    return choice.algorithm->name == std::string(name);
  };
  for (Collective c : {allreduce, broadcast, reduce, reduce_scatter, allgather})
    for (bool staging : {false, true}) {
      CAPTURE(name_of(c));
      CHECK(is(chosen_for(c, 64, in_turn, true, {}, staging), "hierarchical"));
      for (std::size_t bytes = 8; bytes <= 256u << 20; bytes *= 2) {
        const Choice choice = chosen_for(c, bytes, beside, true, {}, staging);
        CHECK(print(choice) == print(chosen_for(c, bytes, in_turn, true, {}, staging)));
        CHECK(!chosen_for(c, bytes, none).algorithm->by_nodes());
        if (bytes >= 1u << 20 && !has_root(c))
          CHECK((choice.algorithm->by_nodes() && choice.why.find("on a node") != choice.why.npos));
      }
    }
  for (Collective c : {allreduce, reduce_scatter})
    CHECK(is(chosen_for(c, 64 << 20, in_turn), "multilane"));
  // The model gives the same time for one leader each; in measurements multilane is ahead.
  for (std::size_t bytes : {1u << 20, 4u << 20, 64u << 20})
    CHECK(is(chosen_for(allgather, bytes, in_turn, true, {}, true), "multilane"));
  // Operands that stay in rank order may go to leaders of neighbours, and not round a ring.
  CHECK(is(chosen_for(allreduce, 64, beside, false), "hierarchical"));
  for (std::size_t bytes : {64u, 64u << 20})
    CHECK(!chosen_for(allreduce, bytes, in_turn, false).algorithm->by_nodes());
  CHECK(is(chosen_for(allreduce, 64, in_turn, true, {"multilane"}), "multilane"));
  CHECK_THROWS_AS(chosen_for(allreduce, 64, none, true, {"multilane"}), Error);
  CHECK_THROWS_AS(chosen_for(allreduce, 64, in_turn, false, {"multilane"}), Error);
  CHECK_THROWS_AS(chosen_for(allreduce, 64, in_turn, false, {"hierarchical"}), Error);
  // Ranks of one node reach each other's memory.
  Problem near = problem_of(allreduce, 8);
  near.one_node = true;
  for (std::size_t bytes : {64u, 64u << 20})
    CHECK(!choose(near, {bytes, usual_machine()}).algorithm->by_nodes());
}

TEST_CASE("choice: one of many calls is cut only if that clearly pays") {
  const char* const slow = "alpha_us=400,latency_us=300,gbit_per_s=0.16,short_kib=8";
  const auto segments = [](const char* machine, std::size_t bytes, bool is_one_of_many) {
    ChoiceInputs now{bytes, machine_from(machine)};
    now.is_one_of_many = is_one_of_many;
    return choose(problem_of(Collective::allreduce, 8), now).cut.segments;
  };
  CHECK(segments(slow, 1 << 20, false) > 1);
  CHECK(segments(slow, 1 << 20, true) == 1);
  CHECK(segments(slow, 16 << 20, true) == 1);
  CHECK(segments("edr-100g", 256 << 20, true) > 1);   // sums hide behind messages
  const std::string handshakes = std::string(slow) + ",long_gbit_per_s=0.1,long_kib=32";
  CHECK(segments(handshakes.c_str(), 1 << 20, false) > 1);
  CHECK(segments(handshakes.c_str(), 512 << 10, true) > 1);
  CHECK(segments(handshakes.c_str(), 1 << 20, true) == 1);   // messages of 128 KiB
}
