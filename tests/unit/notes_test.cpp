// Notes at the end of messages: the words that each rank learns, and the last rank's entry time.
#include <doctest/doctest.h>

#include <cstring>

#include "arrival/notes.hpp"

namespace paceline {
namespace {

constexpr int kRanks = 3;
constexpr double kTickS = 100e-9;   // times are told in ticks of less than this

// A message from one rank to another, seen by the receiver at the second time.
void pass(Notes& from, std::size_t sent, double sent_s, Notes& to, std::size_t received,
          double seen_s) {
  const Part out = from.to_send(sent, sent_s), in = to.to_receive(received);
  REQUIRE(out.bytes == in.bytes);
  std::memcpy(in.data, out.data, out.bytes);
  to.sighted(received, seen_s);
  to.received(received);
}

// The words of rank `r`: how long it has waited.
ArrivalWords said(int r) { return {ArrivalWords::Waits::before_any, r, 1000 * (r + 1), 50 + r}; }

void begin(Notes& notes, const ArrivalWords& own, double now_s) {
  notes.say(own);
  notes.begin(now_s);
}

ArrivalWords said_by(std::initializer_list<int> ranks) {
  ArrivalWords all = said(*ranks.begin());
  for (int r : ranks) all.merge(said(r));
  return all;
}

// The memory that ranks of a node look at.
struct Shown {
  alignas(double) std::byte bytes[64] = {};
};

TEST_CASE("notes: a word goes on from rank to rank, and all know when the last one came") {
  Notes first(kRanks, 0, 2), second(kRanks, 1, 3), third(kRanks, 2, 3);
  begin(first, said(0), 0.0), begin(second, said(1), 1.0), begin(third, said(2), 5.0);
  pass(first, 0, 0.5, second, 0, 1.0);
  pass(second, 1, 1.5, third, 0, 5.0);   // it waited for its receiver
  CHECK(third.words() == said_by({0, 1, 2}));
  CHECK(third.waited_s() == 0);
  CHECK(first.words() == said(0));
  pass(third, 1, 5.1, first, 1, 5.1), pass(third, 2, 5.1, second, 2, 5.2);
  for (Notes* one : {&first, &second, &third}) {
    one->end(6.0);
    CHECK(one->words() == said_by({0, 1, 2}));
  }
  CHECK(first.waited_s() == doctest::Approx(5.0).epsilon(kTickS));
  CHECK(second.waited_s() == doctest::Approx(4.1).epsilon(kTickS));   // by its clock
  CHECK(third.rest_s(0) == doctest::Approx(1.0).epsilon(kTickS));
  CHECK(third.rest_s(7.5) == doctest::Approx(2.5).epsilon(kTickS));   // with another call
}

// In a call of many pieces each message would else add what a header takes, without end.
TEST_CASE("notes: who tells of no new rank tells no time either") {
  Notes one(2, 0, 200), other(2, 1, 200);
  begin(one, said(0), 0.0), begin(other, said(1), 1.0);
  pass(one, 0, 0.0, other, 0, 1.0), pass(other, 1, 1.0, one, 1, 1.1);
  const double learned_s = one.waited_s();
  for (std::size_t at = 2; at < 200; at += 2) {
    pass(one, at, double(at), other, at, double(at) + 0.1);
    pass(other, at + 1, double(at) + 0.5, one, at + 1, double(at) + 0.6);
  }
  CHECK(one.waited_s() == learned_s);
  CHECK(other.waited_s() == 0);

  Shown shown;
  other.show(shown.bytes);
  const double late_s = 500;
  std::memcpy(shown.bytes, &late_s, sizeof late_s);
  one.look(shown.bytes, 600);
  CHECK(one.waited_s() == learned_s);
}

TEST_CASE("notes: ranks of a node show the time itself, which is no later than now") {
  Notes one(2, 0, 1), other(2, 1, 1);
  begin(one, said(0), 0.0), begin(other, said(1), 3.0);
  Shown shown;
  other.show(shown.bytes);
  one.look(shown.bytes, 4.0);
  CHECK(one.words() == said_by({0, 1}));
  CHECK(one.waited_s() == 3.0);
  begin(one, said(0), 0.0);
  one.look(shown.bytes, 2.0);
  CHECK(one.waited_s() == 2.0);
}

TEST_CASE("notes: a call begins without what the one before it knew") {
  Notes one(2, 0, 1), other(2, 1, 1);
  begin(one, said(0), 0.0), begin(other, said(1), 0.5);
  pass(other, 0, 0.5, one, 0, 0.6);
  CHECK(one.words() == said_by({0, 1}));
  begin(one, said(2), 10.0);
  CHECK(one.words() == said(2));
  CHECK(one.waited_s() == 0);
}

}  // namespace
}  // namespace paceline
