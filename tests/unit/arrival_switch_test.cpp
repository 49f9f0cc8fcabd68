// ArrivalSwitch: decides which calls of a node go by arrival. Times are made up.
#include <doctest/doctest.h>

#include <deque>

#include "arrival/arrival_switch.hpp"

using namespace paceline;

namespace {

// Calls one after the other; the switch learns from each two calls later.
struct Calls {
  ArrivalSwitch decides;
  std::deque<ArrivalSwitch::Seen> heard;
  int by_arrival = 0;
  bool takes_turns = false;

  // Makes `calls` calls whose last rank is `late_ns` late, with the rest as usual and by arrival.
  int make(int calls, std::int64_t late_ns, std::int64_t usual_ns, std::int64_t arrival_ns) {
    const int before = by_arrival;
    for (int i = 0; i < calls; ++i) {
      if (heard.size() == 2) {
        decides.learn(heard.front());
        heard.pop_front();
      }
      const bool goes = decides.next();
      by_arrival += goes;
      heard.push_back({late_ns, goes ? arrival_ns : usual_ns, goes, takes_turns});
    }
    return by_arrival - before;
  }
};

}  // namespace

TEST_CASE("arrival switch: nobody late, nothing is tried") {
  Calls calls;
  CHECK(calls.make(1000, 49, 100, 10) == 0);
  CHECK(calls.decides.evidence().calls == 998);
  CHECK(calls.decides.evidence().late == 0);
}

TEST_CASE("arrival switch: on where a late rank leaves less by arrival, off where nobody is late") {
  Calls calls;
  CHECK(calls.make(20, 500, 100, 60) > 5);
  CHECK(calls.decides.evidence().by_arrival);
  CHECK(calls.decides.evidence().usual_ns == 100);
  CHECK(calls.decides.evidence().arrival_ns == 60);
  CHECK(calls.make(640, 500, 100, 60) == 630);   // every 64th as usual, so that this stays known
  CHECK(calls.make(6, 0, 100, 60) <= 6);
  CHECK(calls.make(100, 0, 100, 60) == 0);
  CHECK_FALSE(calls.decides.evidence().by_arrival);
  CHECK(calls.make(20, 500, 100, 60) > 5);       // and at once on again
}

TEST_CASE("arrival switch: what does not pay is tried now and then, ever less often") {
  Calls calls;
  CHECK(calls.make(20, 500, 100, 91) == 4);   // less than a tenth is won
  CHECK(calls.make(60, 500, 100, 91) <= 4);
  CHECK(calls.make(4000, 500, 100, 91) < 60);
  CHECK(calls.make(4000, 500, 100, 91) < 20);
  CHECK_FALSE(calls.decides.evidence().by_arrival);
}

TEST_CASE("arrival switch: off where it no longer leaves less") {
  Calls calls;
  calls.make(20, 500, 100, 60);
  CHECK(calls.make(100, 500, 100, 160) < 40);
  CHECK_FALSE(calls.decides.evidence().by_arrival);
  CHECK(calls.make(5000, 500, 100, 160) < 60);
}

TEST_CASE("arrival switch: late for once, or every other time, is not enough") {
  Calls calls;
  for (int i = 0; i < 100; ++i) {
    CHECK(calls.make(3, 500, 100, 60) == 0);
    CHECK(calls.make(1, 0, 100, 60) == 0);
  }
}

// A rank that waits for a core is late now and then, sometimes several times in a row.
TEST_CASE("arrival switch: ranks that take turns on a core need a longer row of late calls") {
  Calls calls;
  calls.takes_turns = true;
  for (int i = 0; i < 100; ++i) {
    CHECK(calls.make(12, 500, 100, 60) == 0);
    CHECK(calls.make(1, 0, 100, 60) == 0);
  }
  CHECK(calls.make(40, 500, 100, 60) > 15);
  CHECK(calls.decides.evidence().by_arrival);
  // It goes off if some calls, here and there, have no late rank.
  for (int i = 0; i < 8; ++i) {
    calls.make(2, 500, 100, 60);
    calls.make(1, 0, 100, 60);
  }
  CHECK_FALSE(calls.decides.evidence().by_arrival);
}
