// The edges that the Builder derives from an author's steps in order, and the steps that it
// refuses.
#include "ir/builder.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "base/error.hpp"
#include "coll/registry.hpp"
#include "ir/compose.hpp"
#include "ir/edges.hpp"

using namespace paceline;

namespace {

Problem problem(int ranks, int rank, Collective collective = Collective::allreduce) {
  Problem p;
  p.collective = collective;
  p.ranks = ranks;
  p.rank = rank;
  return p;
}

// Returns the edges of the author's steps: "0>2 1>2".
template <class Author>
std::string edges(int cuts, Author&& author) {
  Builder b(problem(3, 0), cuts);
  author(b);
  std::string out;
  for (const auto& [from, to] : edges_of(std::move(b).take("test")))
    out += str(out.empty() ? "" : " ", from, ">", to);
  return out;
}

template <class Action>
std::string fault_of(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("builder: edges follow from what steps read and write") {
  CHECK(edges(2, [](Builder& b) {   // different blocks
          b.recv(1, {b.output(0)});
          b.send(1, {b.output(1)});
        }) == "");
  CHECK(edges(2, [](Builder& b) {   // read after write, on one common block of two
          b.recv(1, {b.output(0)});
          b.send(1, {b.output()});
        }) == "0>1");
  CHECK(edges(1, [](Builder& b) {   // two reads, then a write: it waits for both
          b.send(1, {b.output()});
          b.send(2, {b.output()});
          b.recv(1, {b.output()});
        }) == "0>2 1>2");
  CHECK(edges(1, [](Builder& b) {   // the target is also a source: no step waits for itself
          b.recv(1, {b.output()});
          b.reduce({b.input(), b.output()}, b.output());
          b.finish(b.output());
        }) == "0>1 1>2");
  CHECK(edges(1, [](Builder& b) {   // a copy onto itself is no step
          b.copy(b.output(), b.output());
          b.send(1, {b.output()});
        }) == "");
}

TEST_CASE("builder: the ring's allgather waits for the reduce-scatter's send of the same block") {
  Problem p = problem(4, 2);
  p.in_place = true;
  const Schedule s = build(find_algorithm(Collective::allreduce, "ring"), p);
  // The first send reads block 1 of the vector; the first receive into the vector writes it.
  std::uint32_t receive = 0;
  while (s.steps[receive].kind != Kind::recv || s.begin(s.steps[receive])->space != Space::output)
    ++receive;
  REQUIRE(s.steps[0].kind == Kind::send);
  CHECK(*s.begin(s.steps[0]) == *s.begin(s.steps[receive]));
  const std::vector<Edge> all = edges_of(s);
  CHECK_MESSAGE(std::count(all.begin(), all.end(), Edge{0, receive}) == 1, print(s));
}

TEST_CASE("builder: a slot that changes its shape waits for all that it has seen") {
  CHECK(edges(3, [](Builder& b) {
          const Segment slot = b.scratch(b.output(0));
          b.recv(1, {slot});
          b.reduce({slot, b.input(0)}, b.output(0));
          b.recv(1, {b.as(slot, b.output(2))});
          b.reduce({b.as(slot, b.output(2)), b.input(2)}, b.output(2));
        }) == "0>1 0>2 1>2 2>3");
  CHECK(edges(4, [](Builder& b) {   // cell 1 under one origin is some of cell 0 under another
          const Segment slot = b.scratch(b.output(0, 2));
          b.recv(1, {b.as(slot, b.output(0))});
          Segment second = b.as(slot, b.output(0, 2));
          second.first = 1;
          second.blocks = 1;
          b.recv(1, {second});
          b.recv(1, {b.as(slot, b.output(2))});
        }) == "0>2 1>2");
  CHECK(edges(2, [](Builder& b) {   // blocks of the input and of the output differ in length
          const Segment slot = b.scratch(b.input(0));
          b.copy(b.input(0), slot);
          b.recv(1, {b.as(slot, b.output(0))});
        }) == "0>1");
}

TEST_CASE("builder: slots list their shapes, each once") {
  Builder b(problem(2, 0), 2);
  const Segment slot = b.scratch(b.output(0));
  for (int block : {0, 1, 0}) b.recv(1, {b.as(slot, b.output(block))});
  b.scratch(b.output());   // never used: no memory
  const Schedule s = std::move(b).take("test");
  REQUIRE(s.slots.size() == 2);
  CHECK(s.slots[0].shapes.size() == 2);
  CHECK(s.slots[1].shapes.empty());
}

TEST_CASE("builder: a signal follows everything before it, everything follows a wait") {
  CHECK(edges(3, [](Builder& b) {
          b.recv(1, {b.output(0)});
          b.recv(1, {b.output(1)});
          b.signal(1);
          b.recv(1, {b.output(2)});
        }) == "0>2 1>2");
  CHECK(edges(3, [](Builder& b) {
          b.recv(1, {b.output(0)});
          b.wait(1);
          b.recv(1, {b.output(1)});
          b.signal(1);
        }) == "0>3 1>2 1>3 2>3");
}

TEST_CASE("builder: messages are numbered by direction and peer, also across phases") {
  Builder b(problem(4, 1), 1);
  b.send(3, {b.output()});
  Builder::Part part;
  part.problem = problem(2, 0);
  part.members = {1, 3};
  part.input = part.output = {Space::output, 0, 1};
  Builder sub = b.phase(part);
  sub.send(1, {sub.output()});
  sub.recv(1, {sub.output()});
  b.send(2, {b.output()});
  const Schedule s = std::move(b).take("test");
  const std::pair<int, int> wanted[] = {{3, 0}, {3, 1}, {3, 0}, {2, 0}};   // peer, number
  for (std::size_t i = 0; i < 4; ++i)
    CHECK(std::pair(s.steps[i].peer, s.steps[i].seq) == wanted[i]);
}

TEST_CASE("builder: phases name blocks and ranks through maps, inside of phases too") {
  Builder b(problem(6, 5), 12);
  Builder::Part half;
  half.problem = problem(3, 2);
  half.cuts = 3;
  half.members = {1, 3, 5};
  half.input = half.output = {Space::output, 6, 6};
  Builder sub = b.phase(half);
  Builder::Part pair;
  pair.problem = problem(2, 1);
  pair.members = {0, 2};
  pair.input = pair.output = {Space::output, 8, 2};
  Builder inner = sub.phase(pair);
  sub.send(1, {sub.output(2)});
  inner.send(0, {inner.output()});
  const Schedule s = std::move(b).take("test");
  CHECK(s.steps[0].peer == 3);
  CHECK(s.begin(s.steps[0])->first == 10);
  CHECK(s.begin(s.steps[0])->blocks == 2);
  CHECK(s.steps[1].peer == 1);
  CHECK(s.begin(s.steps[1])->first == 8);
}

TEST_CASE("builder: only a phase that completes the sum finishes blocks") {
  for (bool completes : {false, true}) {
    Builder b(problem(2, 0), 1);
    Builder::Part part;
    part.problem = problem(2, 0);
    part.members = {0, 1};
    part.input = part.output = {Space::output, 0, 1};
    part.completes = completes;
    Builder sub = b.phase(part);
    sub.finish(sub.output());
    CHECK(std::move(b).take("test").steps.size() == (completes ? 1 : 0));
  }
}

TEST_CASE("builder: a peer's memory is a memory of its own") {
  Builder b(problem(3, 1), 3);
  CHECK(b.of_peer(2, b.output(0)).owner == 2);
  CHECK(b.of_peer(1, b.output(0)) == b.output(0));   // one's own has one name only
  CHECK(edges(1, [](Builder& c) {
          c.copy(c.of_peer(1, c.output()), c.output());
          c.copy(c.input(), c.of_peer(1, c.output()));
          c.copy(c.input(), c.of_peer(2, c.output()));
        }) == "0>1");
  CHECK(edges(2, [](Builder& c) {   // two ranks' slots of one number do not share their shape
          const Segment slot = c.scratch(c.output(0));
          c.recv(1, {slot});
          c.copy(c.of_peer(1, c.as(slot, c.output(1))), c.output(1));
          c.recv(1, {c.as(slot, c.output(1))});
        }) == "0>2");
}

TEST_CASE("builder: what cannot be is refused at once") {
  Builder b(problem(3, 0), 2);
  CHECK(has(fault_of([&] { b.input(2); }), "names blocks [2, 3) of 2"));
  CHECK(has(fault_of([&] { b.output(-1); }), "names blocks [-1, 0) of 2"));
  CHECK(has(fault_of([&] { b.output(1, 2); }), "names blocks [1, 3) of 2"));
  CHECK(has(fault_of([&] { b.send(3, {b.output()}); }), "names peer 3 of 3"));
  CHECK(has(fault_of([&] { b.of_peer(-1, b.output()); }), "names peer -1 of 3"));
  CHECK(has(fault_of([&] { Builder(problem(2, 0), 0); }), "cuts a unit into 0 blocks"));
  b.whole();
  CHECK(has(fault_of([&] { b.whole(); }), "begins a second tail"));
  Builder::Part part;
  part.problem = problem(2, 0);
  part.members = {0, 2};
  part.cuts = 2;
  part.input = part.output = {Space::output, 0, 1};
  CHECK(has(fault_of([&] { b.phase(part); }), "cannot live in regions of 1 and 1 blocks"));
  part.input = part.output = region_in(b.scratch(b.output(1)), region_of(b.output()));
  CHECK(has(fault_of([&] { b.phase(part).send(0, {b.phase(part).output(0)}); }),
            "block 0 of a slot that begins at 1"));
  part.input = part.output = region_of(b.output());
  Builder sub = b.phase(part);
  CHECK(has(fault_of([&] { sub.signal(2); }), "names peer 2 of 2"));
}
