// Executes every corner of every knob with real data: the engine over the loop transport, stepped
// in a seeded order. sweep() proves the same symbolically.
#include <doctest/doctest.h>

#include <memory>

#include "base/random.hpp"
#include "coll/algorithms.hpp"
#include "engine/message_operation.hpp"
#include "ir/layout.hpp"
#include "loop/loop.hpp"
#include "world/collective_case.hpp"
#include "world/worlds.hpp"

namespace paceline {
namespace {

using test::Case;

// Takes every message; each must have the length that its receive expects.
struct Taker : Listener {
  bool misfit = false;
  bool arrives(int, const Key&, const Fingerprint&) override { return true; }
  void misfits(int, const Key&, std::size_t, std::size_t) override { misfit = true; }
  void aborted(int, std::uint64_t, const std::string&) override {}
  void lost(int, const std::string&) override {}
};

struct Member {
  std::unique_ptr<Transport> transport;
  test::Buffers<float> data;
  std::vector<std::byte> scratch;
  std::unique_ptr<Operation> operation;
};

// Returns what is wrong with the result; empty: nothing.
std::string execute(const World& world, const Case& c, Random& random) {
  LoopNet net(c.ranks, {.seed = random.next()});
  const std::vector<int> ranks = all_ranks(c.ranks);
  Taker taker;
  std::vector<Member> members;
  for (int r = 0; r < c.ranks; ++r) {
    members.push_back({net.endpoint(r), test::Buffers<float>(c, r), {}, nullptr});
    Member& m = members.back();
    m.transport->listen(&taker);
    const auto schedule = std::make_shared<Schedule>(world[std::size_t(r)]);
    auto bound = std::make_shared<CompiledSchedule>(
        resolve(schedule, even_layout(schedule->problem, c.count), Type::f32, c.op));
    m.operation = std::make_unique<MessageOperation>(bound, Channel{1, &ranks});
    m.scratch.resize(m.operation->scratch_bytes());
    const Call call = m.data.call();
    m.operation->start({call.input, call.output, m.scratch.data()}, 1, {});
  }
  int open = c.ranks;
  std::vector<bool> done(members.size(), false);
  for (long steps = 0; open > 0; ++steps) {
    if (taker.misfit || steps > 300000L * c.ranks)
      return c.name() + ": does not end, or a message does not fit";
    const std::size_t r = random.below(members.size());
    members[r].transport->progress();   // also of done ranks: they still send data
    members[r].operation->advance(*members[r].transport);
    if (!done[r] && members[r].operation->done()) {
      done[r] = true;
      --open;
    }
  }
  for (const Member& m : members)
    if (std::string bad = m.data.check(); !bad.empty()) return bad;
  return {};
}

Case case_of(const Algorithm& a, const Shape& shape, std::size_t count) {
  Case c{a.collective, a.name, shape.ranks, count, shape.root, shape.in_place};
  c.segments = shape.cut.segments;
  c.window = shape.cut.window;
  return c;
}

}  // namespace

TEST_CASE("every algorithm keeps its contract over loop with other knobs than its own") {
  const int most = test::by_length(5, 9, kKnobRanks);
  Random random(20);
  int cases = 0, seen = 0;
  for (const Algorithm* a : registry())
    for (Shape shape : sweep(*a, most)) {
      if (a->is_load_store()) break;   // they read memory of their peers: see execute_test.cpp
      if (++seen % test::by_length(7, 3, 1) != 0) continue;
      if (shape.cut.knobs == Knobs{} || shape.ordered || shape.uneven || !test::accepts(*a, shape))
        continue;
      for (std::size_t count : {std::size_t(1), 3 * std::size_t(shape.ranks) + 1}) {
        shape.cut.segments = 1 + cases % 3;
        shape.cut.window = 1 + cases % 2;
        const Case c = case_of(*a, shape, count);
        const std::string bad = execute(make_world(*a, shape), c, random);
        CHECK_MESSAGE(bad.empty(), describe(*a, shape), ": ", bad);
        ++cases;
      }
    }
  MESSAGE(cases, " cases");
}

TEST_CASE("executing knobs: a schedule that loses a combination is noticed") {
  Algorithm lossy = allreduce_recursive_multiplying;
  lossy.build = [](const Problem& pb, const Knobs&, Builder& b) {
    const Segment came = b.scratch(b.input());
    b.send((pb.rank + 1) % pb.ranks, {b.input()});
    b.recv((pb.rank + pb.ranks - 1) % pb.ranks, {came});
    b.reduce({b.input(), came}, b.output());
  };
  Random random(1);
  const Shape shape{.ranks = 3};
  CHECK(execute(make_world(lossy, shape), case_of(lossy, shape, 5), random).find("rank ") !=
        std::string::npos);
}

}  // namespace paceline
