// Cache of a communicator's calls: equality of calls, and the number that it keeps.
#include <doctest/doctest.h>

#include <vector>

#include "runtime/call_cache.hpp"
#include "runtime/progress/session.hpp"
#include "runtime/schedule_cache.hpp"

using namespace paceline;

namespace {

Call call_of(std::size_t count, float* buffer) {
  Call call;
  call.collective = Collective::allreduce;
  call.type = Type::f32;
  call.count = count;
  call.input = call.output = buffer;
  return call;
}

void keep(CallCache& recent, const Asked& asked, std::shared_ptr<ActiveOp> active = nullptr) {
  if (!active) active = std::make_shared<ActiveOp>();
  recent.keep(asked, std::make_shared<Prepared>(), std::move(active), {1, 1});
}

}  // namespace

TEST_CASE("recent calls: other buffers are the same call, unless some are shared") {
  std::vector<float> a(64), b(64);
  const Call on_a = call_of(32, a.data()), on_b = call_of(32, b.data());
  Call apart = on_a;
  apart.output = b.data();
  CallCache recent(0, 2);
  const auto one = std::make_shared<ActiveOp>(), two = std::make_shared<ActiveOp>();
  keep(recent, {on_a, 0}, one);
  REQUIRE(recent.find({on_b, 0}));
  CHECK(recent.find({on_b, 0})->operations.front() == one);
  CHECK(!recent.find({apart, 0}));
  CHECK(!recent.find({on_a, 1}));   // some array has been shared, or freed, since

  keep(recent, {on_a, 1}, one);
  CHECK(!recent.find({on_b, 1}));
  keep(recent, {on_b, 1}, two);
  REQUIRE(recent.find({on_a, 1}));   // both at once
  CHECK(recent.find({on_a, 1})->operations.front() == one);
  REQUIRE(recent.find({on_b, 1}));
  CHECK(recent.find({on_b, 1})->operations.front() == two);
}

TEST_CASE("recent calls: what asks for more, or may be wrong, is not the call before") {
  std::vector<float> a(64);
  const Call call = call_of(32, a.data());
  CallCache recent(0, 2);
  keep(recent, {call, 0});
  Call other = call;
  SUBCASE("in segments") { other.cut.segments = 2; }
  SUBCASE("by another algorithm") { other.algorithm = "ring"; }
  SUBCASE("within some time") { other.timeout_ms = 5; }
  SUBCASE("another operation") { other.op = Op::max; }
  SUBCASE("at a time") { other.cut.window = 2; }
  SUBCASE("with a tag") { other.tag = 7; }
  SUBCASE("one of many") { other.is_one_of_many = true; }
  SUBCASE("more urgent") { other.priority = 1; }
  SUBCASE("by a knob") { other.cut.knobs.radix = 4; }
  SUBCASE("on buffers that overlap") { other.output = a.data() + 1; }
  SUBCASE("without an output") { other.output = nullptr; }
  for (int round = 0; round < 2; ++round) {
    CHECK(recent.find({call, 0}));   // whichever was asked for last
    CHECK(!recent.find({other, 0}));
  }
  const auto active = std::make_shared<ActiveOp>();
  keep(recent, {other, 0}, active);
  CHECK((recent.find({other, 0}) != nullptr) == (other.op == Op::max || other.is_one_of_many));
}

TEST_CASE("recent calls: each field is part of the call, also where values trade places") {
  std::vector<float> a(64), b(64);
  Call call = call_of(2, a.data());
  call.collective = Collective::reduce;
  call.output = b.data();
  call.root = 3;
  for (const std::uint64_t shares : {0, 1}) {   // whether some array is shared
    CallCache recent(3, 4);
    keep(recent, {call, shares});
    const auto finds = [&](auto&& change) {
      Call other = call;
      change(other);
      return recent.find({other, shares}) != nullptr;
    };
    CHECK(!finds([](Call& c) { c.collective = Collective::allreduce; }));
    CHECK(!finds([](Call& c) { c.type = Type::f64; }));
    CHECK(!finds([](Call& c) { c.op = Op::max; }));
    CHECK(!finds([](Call& c) { c.root = 2; }));
    CHECK(!finds([](Call& c) { c.count = 3; }));
    CHECK(!finds([](Call& c) { c.count = 3, c.root = 2; }));
    CHECK(!finds([](Call& c) { c.output = const_cast<void*>(c.input); }));
    const auto swapped = [&](Call& c) { c.input = b.data(), c.output = a.data(); };
    CHECK(finds(swapped) == (shares == 0));
    CHECK(!recent.find({call, shares + 1}));   // some array has been shared, or freed, since
    CHECK(finds([](Call&) {}));
  }
}

TEST_CASE("recent calls: units of differing length") {
  std::vector<float> a(64), b(64);
  Call call = call_of(2, a.data());
  call.output = b.data();
  call.uneven = true;
  call.counts = {3, 2, 4};
  const auto finds = [&](CallCache& recent, auto&& change) {
    Call other = call;
    change(other);
    return recent.find({other, 0}) != nullptr;
  };
  for (const Collective collective : {Collective::gather, Collective::scatter,
                                      Collective::allgather, Collective::reduce_scatter}) {
    call.collective = collective;
    call.root = 1;
    const bool reads_all =
        collective == Collective::scatter || collective == Collective::reduce_scatter;
    CallCache recent(1, 3);
    keep(recent, {call, 0});
    CHECK(finds(recent, [](Call&) {}));
    CHECK(!finds(recent, [](Call& c) { c.counts = {2, 3, 4}; }));
    CHECK(!finds(recent, [](Call& c) { c.counts.clear(); }));
    CHECK(!finds(recent, [](Call& c) { c.uneven = false; }));
    const auto at = [&](Call& c, float* whole, float* own) {
      c.input = reads_all ? whole : own;
      c.output = reads_all ? own : whole;
    };
    CHECK(finds(recent, [&](Call& c) { at(c, a.data(), b.data()); }));
    CHECK(finds(recent, [&](Call& c) { at(c, a.data(), a.data() + 9); }));     // behind it
    CHECK(!finds(recent, [&](Call& c) { at(c, a.data(), a.data() + 8); }));    // overlaps its end
    CHECK(!finds(recent, [&](Call& c) { at(c, a.data(), a.data() + 4); }));    // of another rank
    CHECK(!finds(recent, [&](Call& c) { at(c, a.data(), a.data() + 3); }));    // in place
    Call in_place = call;
    at(in_place, a.data(), a.data() + 3);
    keep(recent, {in_place, 0});
    CHECK(recent.find({in_place, 0}) != nullptr);
  }
  call.collective = Collective::alltoall;
  call.counts_received = {1, 2, 6};
  CallCache recent(1, 3);
  keep(recent, {call, 0});
  CHECK(finds(recent, [](Call&) {}));
  CHECK(!finds(recent, [](Call& c) { c.counts_received = {2, 1, 6}; }));
  CHECK(!finds(recent, [&](Call& c) { c.output = a.data() + 8; }));
  CHECK(finds(recent, [&](Call& c) { c.output = a.data() + 9; }));
}

TEST_CASE("recent calls: a training's dozen sizes stay known") {
  std::vector<float> a(64);
  CallCache recent(0, 2);
  const auto active = std::make_shared<ActiveOp>();
  int known = 0;
  for (int round = 0; round < 2; ++round)
    for (std::size_t count = 2; count <= 2u << 24; count *= 4) {
      if (recent.find({call_of(count, a.data()), 0})) ++known;
      else keep(recent, {call_of(count, a.data()), 0}, active);
    }
  CHECK(known >= 11);   // of 13
}
