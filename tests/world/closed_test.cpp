// Communicators that this rank has closed: messages about them take no room from messages about
// those that it has yet to make; and a communicator closes when its last reference goes.
#include <doctest/doctest.h>

#include <memory>

#include "bootstrap/open_world.hpp"
#include "expect_fault.hpp"
#include "loop/loop.hpp"

namespace paceline {
namespace {

struct Two {
  LoopNet net{2, {}};
  Communicator mine = joined(0), theirs = joined(1);

  ~Two() {
    mine.leave();
    theirs.leave();
  }
  Communicator joined(int rank) {
    WorldConfig config;
    config.progress = Progress::caller;
    return join_transport(net.endpoint(rank), config);
  }
};

TEST_CASE("aborts of closed communicators leave room for those of later ones") {
  constexpr int kClosed = 1100;   // a rank keeps 1024 communicators to come
  Two both;
  auto& [net, mine, theirs] = both;
  const auto look = [&] { (void)mine.is_called(); };
  for (std::uint64_t tag = 1; tag <= kClosed; ++tag) {
    { const Communicator closed = mine.subgroup({0, 1}, tag); }
    mine.subgroup({0}, kClosed + tag);   // by then the closed one is forgotten
    theirs.subgroup({0, 1}, tag).abort("gives up");
    look();
  }
  constexpr std::uint64_t kLast = 3 * kClosed;
  theirs.subgroup({0, 1}, kLast).abort("gives up the last one");
  look();
  CHECK(mine.subgroup({0, 1}, kLast).broken().find("gives up the last one") != std::string::npos);
}

// A new communicator of that tag would take the closed one's early messages for its own: its
// receives would get numbers of a call that was never made here.
TEST_CASE("the tag of a communicator that was closed names no other one") {
  Two both;
  auto& [net, mine, theirs] = both;
  float value = 111;
  Call call{Collective::broadcast, Type::f32};
  call.output = &value;
  call.count = 1;
  call.root = 1;
  {
    const Communicator closed = mine.subgroup({0, 1}, 5);   // it makes no call
    Communicator sends = theirs.subgroup({0, 1}, 5);
    Request sent = sends.start(call);
    for (int i = 0; i < 100 && !sent.test(); ++i) (void)mine.is_called();
  }
  for (Communicator* world : {&mine, &theirs})
    CHECK(test::expect_fault(Fault::usage, {"its tag has named another group"},
                             [&] { (void)world->subgroup({0, 1}, 5); }) == "");
  CHECK(mine.subgroup({0, 1}, 6).valid());
}

TEST_CASE("callbacks: one that holds a communicator last closes it") {
  Two both;
  auto& [net, mine, theirs] = both;
  float one = 1, two = 2;
  const auto sum = [](Communicator& of, float& value) {
    Call call{Collective::allreduce, Type::f32, Op::sum};
    call.input = call.output = &value;
    call.count = 1;
    return of.start(call);
  };
  int called = 0;
  Request request = sum(mine, one), other = sum(theirs, two);
  // A second callback replaces the first, which is destroyed with its captures.
  for (std::uint64_t tag = 1; tag <= 2; ++tag)
    request.on_complete([&called, held = std::make_shared<Communicator>(mine.subgroup({0}, tag))](
                            bool ok) { called += ok; });
  for (int i = 0; i < 1000 && called == 0; ++i) {
    (void)other.test();
    (void)request.test();
  }
  CHECK(called == 1);
  CHECK(one == 3);
}

}  // namespace
}  // namespace paceline
