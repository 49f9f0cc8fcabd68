// The book of plans: a plan serves the calls it was made for, and no other.
#include <doctest/doctest.h>

#include <utility>
#include <vector>

#include "runtime/schedule_cache.hpp"

using namespace paceline;

namespace {

CallShape shape() {
  Call call{.collective = Collective::alltoall, .type = Type::f32, .op = Op::sum, .root = 1};
  call.count = 8;
  call.uneven = true;
  call.counts = {3, 5};
  call.counts_received = {5, 4};
  call.algorithm = "ring";
  call.cut.segments = 2;
  call.cut.window = 3;
  call.cut.knobs = {.radix = 4, .blocks = 5};
  return {call, false, false};
}

std::shared_ptr<Prepared> plan_of(const CallShape& shape) {
  auto plan = std::make_shared<Prepared>();
  plan->shape = shape;
  return plan;
}

}  // namespace

TEST_CASE("plans: a call that differs in anything is another, also where values trade places") {
  ScheduleCache book;
  book.add(plan_of(shape()));
  CallShape s = shape();
  bool other = true;
  Call& c = s.call;
  SUBCASE("the same") { other = false; }
  SUBCASE("its time-out is no part of a plan") { c.timeout_ms = 9, other = false; }
  SUBCASE("collective") { c.collective = Collective::allgather; }
  SUBCASE("type") { c.type = Type::i32; }
  SUBCASE("operation") { c.op = Op::max; }
  SUBCASE("root") { c.root = 0; }
  SUBCASE("count") { c.count = 9; }
  SUBCASE("even") { c.uneven = false; }
  SUBCASE("counts") { c.counts = {3, 6}; }
  SUBCASE("counts in another order") { c.counts = {5, 3}; }
  SUBCASE("fewer counts") { c.counts = {3}; }
  SUBCASE("received") { c.counts_received = {5, 5}; }
  SUBCASE("received in another order") { c.counts_received = {4, 5}; }
  SUBCASE("sent and received") { std::swap(c.counts, c.counts_received); }
  SUBCASE("algorithm") { c.algorithm = "gnir"; }
  SUBCASE("segments") { c.cut.segments = 3; }
  SUBCASE("size of a segment") { c.cut.segment_bytes = 3; }
  SUBCASE("window") { c.cut.window = 2; }
  SUBCASE("segments and window") { std::swap(c.cut.segments, c.cut.window); }
  SUBCASE("radix") { c.cut.knobs.radix = 5; }
  SUBCASE("blocks") { c.cut.knobs.blocks = 4; }
  SUBCASE("radix and blocks") { std::swap(c.cut.knobs.radix, c.cut.knobs.blocks); }
  SUBCASE("in place") { s.in_place = true; }
  SUBCASE("shared") { s.shared = true; }
  SUBCASE("one of many") { c.is_one_of_many = true; }
  SUBCASE("in place is not shared") {
    s.in_place = true;
    book.add(plan_of(s));
    std::swap(s.in_place, s.shared);
  }
  CHECK((book.find(s) == nullptr) == other);
  CHECK(book.find(shape()));
}
