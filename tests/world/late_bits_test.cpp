// Sums in rank order, or in ring order, have the same bits whichever ranks are predicted late and
// whichever are: executed over loop, with ranks that enter and move in random orders.
#include <doctest/doctest.h>

#include <memory>

#include "base/random.hpp"
#include "coll/algorithms.hpp"
#include "coll/registry.hpp"
#include "engine/message_operation.hpp"
#include "ir/compose.hpp"
#include "ir/layout.hpp"
#include "loop/loop.hpp"
#include "world/sums.hpp"
#include "world/worlds.hpp"

namespace paceline {
namespace {

using test::Case;
using test::SumBuffers;

struct Taker : Listener {
  bool arrives(int, const Key&, const Fingerprint&) override { return true; }
  void misfits(int, const Key&, std::size_t, std::size_t) override { FAIL("a message misfits"); }
  void aborted(int, std::uint64_t, const std::string&) override {}
  void lost(int, const std::string&) override {}
};

struct Member {
  std::unique_ptr<Transport> transport;
  std::unique_ptr<SumBuffers> data;
  std::vector<std::byte> scratch;
  std::unique_ptr<Operation> operation;
  std::size_t enters = 0;   // after this many steps of all ranks
};

// Returns all ranks' results as bytes.
std::string results(const World& world, const Case& c, Type type, Random& random) {
  LoopNet net(c.ranks, {.seed = random.next()});
  const std::vector<int> ranks = all_ranks(c.ranks);
  Taker taker;
  std::vector<Member> members;
  for (int r = 0; r < c.ranks; ++r) {
    Member m{net.endpoint(r), std::make_unique<SumBuffers>(c, type, r), {}, nullptr,
             random.below(600)};
    m.transport->listen(&taker);
    const auto schedule = std::make_shared<Schedule>(world[std::size_t(r)]);
    auto bound = std::make_shared<CompiledSchedule>(
        resolve(schedule, even_layout(schedule->problem, c.count), type, c.op));
    m.operation = std::make_unique<MessageOperation>(bound, Channel{1, &ranks});
    m.scratch.resize(m.operation->scratch_bytes());
    members.push_back(std::move(m));
  }
  std::vector<bool> begun(members.size()), done(members.size());
  for (std::size_t steps = 0, left = members.size(); left > 0; ++steps) {
    if (steps > 3000000) FAIL(c.name(), " does not end");
    const std::size_t r = random.below(members.size());
    Member& m = members[r];
    if (steps < m.enters) continue;
    if (!begun[r]) {
      const Call call = m.data->call();
      m.operation->start({call.input, call.output, m.scratch.data()}, 1, {});
      begun[r] = true;
    }
    m.transport->progress();
    m.operation->advance(*m.transport);
    if (done[r] || !m.operation->done()) continue;
    done[r] = true;
    --left;
  }
  std::string all;
  for (const Member& m : members) all += m.data->result();
  return all;
}

std::string bits_of(const Algorithm& a, const Case& c, Type type, std::vector<int> late,
                    int segments, Random& random) {
  Shape shape{.collective = a.collective, .ranks = c.ranks, .root = c.root,
              .in_place = c.in_place, .fused = random.below(2) == 1,
              .cut = {.segments = segments, .window = 1 + static_cast<int>(random.below(3))}};
  if (a.takes.blocks) shape.cut.knobs.blocks = static_cast<int>(random.below(4));
  if (a.by_nodes()) {   // of unequal size, and not side by side: 1 or 2 and more
    shape.no_staging = true;
    for (int rank = 0; rank < c.ranks; ++rank)
      shape.nodes.push_back(c.ranks == 7 ? rank % 3 : rank < 3 ? rank : rank % 2);
  }
  shape.late = std::move(late);
  return results(make_world(a, shape), c, type, random);
}

// Returns the algorithm whose bits it claims to have.
const Algorithm& first_of(const Algorithm& a) {
  if (a.bits == Bits::by_ring) return a.by_nodes() ? allreduce_multilane : allreduce_ring;
  return find_algorithm(a.collective, a.by_nodes() ? "multilane_direct" : "direct");
}

// Returns the number of tried cases whose bits differ from those of `first`.
int others(const Algorithm& a, const Algorithm& first, int p, int& tried, int more_segments = 0) {
  Random random(static_cast<std::uint64_t>(p));
  std::vector<std::vector<int>> sets{{}};
  if (a.expects_late())
    for (std::vector<int>& late : late_sets(p)) sets.push_back(std::move(late));
  int found = 0, turn = 0;
  for (Type type : test::kFloats) {
    Case c{a.collective, a.name, p, std::size_t(2 * p + 3), 0, turn % 2 == 1};
    c.root = has_root(a.collective) ? turn % p : 0;
    c.op = test::kInexact[turn++ % 3];
    const int segments = 1 + static_cast<int>(random.below(3));
    const std::string wanted = bits_of(first, c, type, {}, segments, random);
    for (const std::vector<int>& late : sets) {
      found += bits_of(a, c, type, late, segments + more_segments, random) != wanted;
      ++tried;
    }
  }
  return found;
}

TEST_CASE("late: sums in rank or ring order have the bits of direct or ring, whoever is late") {
  int tried = 0;
  for (const Algorithm* a : registry()) {
    if (a->bits == Bits::own || a->is_load_store()) continue;
    CHECK(has_op(a->collective));
    CHECK(!a->bits_follow_late());
    for (int p : {1, 2, 3, test::by_length(4, 5, 7), 18})
      CHECK_MESSAGE(others(*a, first_of(*a), p, tried) == 0, name_of(a->collective), "/", a->name,
                    ", ", p);
  }
  CHECK(tried > 200);
  MESSAGE(tried, " calls");
}

TEST_CASE("late: who says that its bits follow late ranks is right, and this test sees it") {
  for (const Algorithm* a : registry())
    if (a->bits_follow_late()) {
      int tried = 0;
      CHECK_MESSAGE(others(*a, first_of(*a), 5, tried) > 10, name_of(a->collective), "/", a->name);
    }
}

TEST_CASE("late: the bits of a ring are those of as many segments, and not those of direct") {
  for (const Algorithm* a : {&allreduce_tail_as_ring, &allreduce_multilane_tail_as_ring}) {
    int tried = 0;
    CHECK(others(*a, first_of(*a), 5, tried, 1) > 10);
    CHECK(others(*a, a->by_nodes() ? allreduce_multilane_direct : allreduce_direct, 5, tried) > 10);
  }
}

TEST_CASE("late: of a collective that sums, who expects late ranks either follows or keeps order") {
  int keep = 0;
  for (const Algorithm* a : registry()) {
    if (!a->expects_late() || !has_op(a->collective)) continue;
    const bool keeps = a->bits != Bits::own;
    CHECK_MESSAGE(a->bits_follow_late() != keeps, a->name);
    keep += keeps;
    Problem problem{.collective = a->collective, .ranks = 5};
    if (a->by_nodes()) problem.nodes = {0, 0, 1, 2, 2};
    problem.late = {3};
    CHECK(!why_not(*a, problem) == keeps);
    problem.fast = true;
    CHECK(!why_not(*a, problem));
    problem.late.clear();
    problem.fast = false;
    CHECK(!why_not(*a, problem));
  }
  CHECK(keep >= 4);
}

}  // namespace
}  // namespace paceline
