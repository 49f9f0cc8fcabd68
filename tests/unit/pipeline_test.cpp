// The passes over a finished schedule: pipeline and fuse.
#include "ir/pipeline.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/error.hpp"
#include "coll/registry.hpp"
#include "ir/fuse.hpp"
#include "world/worlds.hpp"

using namespace paceline;

namespace {

Schedule allreduce(const char* name, int ranks, int rank) {
  Problem p;
  p.ranks = ranks;
  p.rank = rank;
  return build(find_algorithm(Collective::allreduce, name), p);
}

int count(const Schedule& s, Kind kind) {
  return static_cast<int>(std::count_if(s.steps.begin(), s.steps.end(),
                                        [&](const Step& step) { return step.kind == kind; }));
}

int used_slots(const Schedule& s) {
  return static_cast<int>(std::count_if(s.slots.begin(), s.slots.end(),
                                        [](const Slot& slot) { return !slot.shapes.empty(); }));
}

template <class Action>
Fault fault_of(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.fault();
  }
  FAIL("no error");
  return Fault::internal;
}

}  // namespace

TEST_CASE("pipeline: copies on disjoint blocks, lanes in turn, slots by lane") {
  const Schedule one = allreduce("ring", 3, 1);
  for (int segments : {2, 3, 5})
    for (int window : {1, 2, 3, 9}) {
      const Schedule s = pipeline(one, segments, window);
      CHECK(s.pipeline == segments);
      CHECK(s.lanes == std::min(segments, window));
      CHECK(s.blocks() == segments * one.blocks());
      CHECK(s.slots.size() == one.slots.size() * std::size_t(s.lanes));
      REQUIRE(s.steps.size() == one.steps.size() * std::size_t(segments));
      for (std::size_t i = 0; i < s.steps.size(); ++i) {
        const int copy = static_cast<int>(i / one.steps.size());
        CHECK(s.steps[i].lane == copy % s.lanes);
        CHECK(s.steps[i].kind == one.steps[i % one.steps.size()].kind);
        for (const Segment* x = s.begin(s.steps[i]); x != s.end(s.steps[i]); ++x) {
          CHECK(x->first / one.blocks() == copy);
          if (x->space == Space::scratch)
            CHECK(x->slot / static_cast<int>(one.slots.size()) == copy % s.lanes);
        }
      }
    }
}

// Two ranks may be in different copies: a number that is used twice in a lane would mix their data.
TEST_CASE("pipeline: messages of a lane are numbered on, from 0 without gaps") {
  for (bool fused : {false, true}) {
    const Schedule one = allreduce("recursive_doubling", 5, 1);
    const Schedule s = pipeline(fused ? fuse(one) : one, 7, 3);
    std::map<std::tuple<bool, int, int>, std::set<int>> seen;   // sent, peer, lane
    std::map<std::tuple<bool, int, int>, int> messages;
    for (const Step& step : s.steps) {
      const bool sent = step.kind == Kind::send;
      if (!sent && step.kind != Kind::recv && step.kind != Kind::recv_reduce) continue;
      seen[{sent, step.peer, step.lane}].insert(step.seq);
      ++messages[{sent, step.peer, step.lane}];
    }
    for (const auto& [where, numbers] : seen) {
      CHECK(static_cast<int>(numbers.size()) == messages[where]);
      CHECK(*numbers.begin() == 0);
      CHECK(*numbers.rbegin() == messages[where] - 1);
    }
  }
}

TEST_CASE("pipeline: a copy waits for all of the copy whose lane it takes over, for no other") {
  const Schedule one = allreduce("ring", 2, 0);
  const auto steps = static_cast<std::uint32_t>(one.steps.size());
  const Schedule s = pipeline(one, 5, 2);
  std::vector<std::vector<bool>> reach(s.steps.size(), std::vector<bool>(s.steps.size(), false));
  for (std::uint32_t to = 0; to < s.steps.size(); ++to)
    for (const auto& [from, end] : edges_of(s)) {
      if (end != to) continue;
      reach[to][from] = true;
      for (std::uint32_t i = 0; i < from; ++i) reach[to][i] = reach[to][i] || reach[from][i];
    }
  for (std::uint32_t to = 0; to < s.steps.size(); ++to)
    for (std::uint32_t from = 0; from < to - to % steps; ++from)
      CHECK(reach[to][from] == ((to / steps - from / steps) % 2 == 0));
}

TEST_CASE("pipeline: a whole tail takes all segments in one message each") {
  for (const char* name : {"ring", "circulant", "rabenseifner", "direct"}) {
    CAPTURE(std::string(name));
    const Schedule one = fuse(allreduce(name, 5, 1));
    REQUIRE(one.tail > 0);
    CHECK(print(pipeline(one, 1, 2, Tail::whole)) == print(one));
    const Schedule s = pipeline(one, 4, 2, Tail::whole);
    CHECK(s.head() == 4 * one.head());
    CHECK(s.tail == one.tail);   // messages only
    for (int i = 0; i < s.tail; ++i) {
      const Step& step = s.steps[std::size_t(s.head() + i)];
      const Step& before = one.steps[std::size_t(one.head() + i)];
      CHECK(step.peer == before.peer);
      CHECK(step.lane == 0);
      CHECK(step.segments == 4 * before.segments);
      CHECK(s.segment_of(std::uint32_t(s.head() + i)) == 4);
      for (std::uint32_t k = 0; k < step.segments; ++k) {   // those of one segment, of the next
        Segment expected = s.begin(step)[k];
        expected.first -= static_cast<int>(k / before.segments) * one.blocks();
        CHECK(expected == one.begin(before)[k % before.segments]);
      }
    }
    CHECK(s.segment_of(0) == 0);
    CHECK(s.segment_of(std::uint32_t(s.head() - 1)) == 3);
    CHECK(pipeline(one, 4, 2).tail == 0);
  }
}

// The root reads no scratch, others do: all must have the same lanes.
TEST_CASE("pipeline: where a tail reads scratch, no segment takes over another's") {
  for (int rank : {0, 1}) {
    Problem problem;
    problem.collective = Collective::reduce;
    problem.ranks = 3;
    problem.rank = rank;
    const Schedule one = build(find_algorithm(Collective::reduce, "scatter_gather"), problem, {});
    CHECK(one.tail_reads_scratch);
    CHECK(pipeline(one, 5, 2, Tail::whole).lanes == 5);
    CHECK(pipeline(one, 5, 2).lanes == 2);
  }
}

TEST_CASE("pipeline: one segment is the schedule itself; what cannot be is refused") {
  const Schedule one = allreduce("ring", 3, 0);
  CHECK(print(pipeline(one, 1, 4)) == print(one));
  CHECK(fault_of([&] { pipeline(one, 0, 1); }) == Fault::usage);
  CHECK(fault_of([&] { pipeline(one, 1, 0); }) == Fault::usage);
  CHECK(fault_of([&] { pipeline(pipeline(one, 2, 1), 2, 1); }) == Fault::internal);
}

TEST_CASE("fuse: the ring adds as it receives, and needs half the scratch") {
  for (int p = 2; p <= 8; ++p) {
    const Schedule s = allreduce("ring", p, 1), f = fuse(s);
    CHECK(count(f, Kind::recv_reduce) == p - 1);
    CHECK(count(f, Kind::reduce) == 0);
    CHECK(count(f, Kind::recv) == p - 1);   // the allgather's
    CHECK(count(f, Kind::send) == count(s, Kind::send));
    CHECK(used_slots(s) == std::min(2, p - 1) + std::min(2, p - 2));
    CHECK(used_slots(f) == std::min(2, p - 2));
  }
}

TEST_CASE("fuse: the message takes its place among the operands") {
  const Schedule f = fuse(allreduce("recursive_doubling", 2, 1));   // rank 0's operand comes first
  const auto step = std::find_if(f.steps.begin(), f.steps.end(),
                                 [](const Step& x) { return x.kind == Kind::recv_reduce; });
  REQUIRE(step != f.steps.end());
  CHECK(f.begin(*step)[1].space == Space::incoming);
  CHECK(f.begin(*step)[2].space == Space::input);
}

// Two ranks that swap whole vectors in place: fused, each receive would wait for the rank's own
// send, which waits for the other's receive.
TEST_CASE("fuse: a receive never comes to wait for the send of its own round") {
  Problem p;
  p.ranks = 2;
  Builder b(p, 1);
  const Segment came = b.scratch(b.output());
  b.send(1, {b.output()});
  b.recv(1, {came});
  b.reduce({b.output(), came}, b.output());
  const Schedule s = std::move(b).take("exchange");
  CHECK(count(fuse(s), Kind::recv_reduce) == 0);
}

// Several messages at a time: all are sent before the first is received, so the sends of a
// receive's round may lie behind receives before it.
TEST_CASE("fuse: nor for another send of its own round") {
  World world = test::by_hand({.ranks = 3, .in_place = true}, 1, [](const Problem& pb, Builder& b) {
    std::vector<Segment> sources{b.output()};
    for (int k : {1, 2}) b.send((pb.rank + k) % 3, {b.output()});
    for (int k : {1, 2}) {
      sources.push_back(b.scratch(b.output()));
      b.recv((pb.rank + k) % 3, {sources.back()});
    }
    b.reduce(sources, b.output());
    b.finish(b.output());
  });
  REQUIRE(verify(world));
  for (Schedule& s : world) s = fuse(s);
  const Verdict verdict = verify(world);
  CHECK_MESSAGE(verdict, verdict.fault);
}

TEST_CASE("fuse: what is read again, or only in part, stays in scratch") {
  Problem p;
  p.ranks = 2;
  for (bool read_again : {false, true}) {
    Builder b(p, 2);
    const Segment came = b.scratch(b.output());
    b.recv(1, {came});
    if (read_again) {
      b.reduce({came, b.input()}, b.output());
      b.send(1, {came});
    } else {
      b.reduce({b.as(came, b.output(0)), b.input(0)}, b.output(0));
    }
    CHECK(count(fuse(std::move(b).take("test")), Kind::recv_reduce) == 0);
  }
  CHECK(fault_of([] { fuse(pipeline(allreduce("ring", 2, 0), 2, 1)); }) == Fault::internal);
}
