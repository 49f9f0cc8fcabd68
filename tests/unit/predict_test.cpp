// When the predictor names late ranks, in programs of many kinds, and what that costs at worst.
#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>

#include "arrival/predict.hpp"
#include "arrival/sequence.hpp"
#include "base/random.hpp"

using namespace paceline;

namespace {

constexpr std::int64_t kMessage = 1'000'000;   // ns

// Prices of a ring, and of a form whose early ranks forward the message and an eighth more.
CallPrices ring_prices(std::int64_t ranks) {
  const std::int64_t usual = 2 * (ranks - 1) * kMessage / ranks;
  return {kMessage, usual, [=](const std::vector<int>& late) -> std::optional<LatePrice> {
    const std::int64_t early = ranks - static_cast<std::int64_t>(late.size());
    return LatePrice{9 * (ranks - 1) * kMessage / (8 * early), (early - 1) * kMessage / early};
  }};
}

// Time of such a call from the last entry on. Ranks that are late without being named, or named
// without being late, cost the early ranks' exchange once more.
std::int64_t rest_of(const std::vector<std::int64_t>& entered, const std::vector<int>& named) {
  const auto p = static_cast<std::int64_t>(entered.size());
  if (named.empty()) return 2 * (p - 1) * kMessage / p;
  std::int64_t early = 0;
  for (int r = 0; r < int(p); ++r)
    if (std::find(named.begin(), named.end(), r) == named.end())
      early = std::max(early, entered[std::size_t(r)]);
  const std::int64_t m = p - static_cast<std::int64_t>(named.size());
  const std::int64_t last = *std::max_element(entered.begin(), entered.end());
  const std::int64_t left = std::max<std::int64_t>(0, (m - 1) * kMessage / m - (last - early));
  return 9 * (p - 1) * kMessage / (8 * m) + left;
}

using Entries = std::vector<std::int64_t>;   // by rank; ns

Latest latest_of(const Entries& entered, std::int64_t rest) {
  const std::int64_t last = *std::max_element(entered.begin(), entered.end());
  ArrivalWords all;
  for (std::size_t r = 0; r < entered.size(); ++r) {
    const ArrivalWords one(ArrivalWords::Waits::before_any, int(r), last - entered[r], rest);
    if (r == 0) all = one;
    else all.merge(one);
  }
  return all.latest();
}

// The calls of a communicator as runtime/arrivals.cpp makes them: what a blocking call teaches is
// known two calls later; of a call that is started, at the second next one of its place.
class Program {
 public:
  explicit Program(int ranks, bool starts = false, CallPrices (*prices)(std::int64_t) = ring_prices)
      : ranks_(ranks), starts_(starts), prices_(prices), predictor_(ranks) {}
  Program(const Program&) = delete;   // what it holds points into it

  // Makes a call of this signature. Returns the ranks that it names.
  std::vector<int> call(std::uint64_t alike, const Entries& entered) {
    Site* const site = settled(alike);
    const std::vector<int> named = predictor_.late(site->place);
    sequence_.count(alike);
    predictor_.count_call(site->place);
    const std::int64_t rest = rest_of(entered, named);
    untold(*site).push_back({site, sequence_.calls(), named, latest_of(entered, rest)});
    const std::int64_t usual = rest_of(entered, {});
    spent_ns += rest;
    usual_ns += usual;
    return named;
  }
  Predictor::Evidence evidence(std::uint64_t alike) {
    return predictor_.evidence(settled(alike)->place);
  }

  std::int64_t spent_ns = 0, usual_ns = 0;   // from the last entries on; the latter naming none
  std::uint64_t early = 2;   // calls until one is known; a mutant knows earlier

 private:
  struct Site;
  struct Made {
    Site* site;   // of sites_, which keeps all
    std::uint64_t number;
    std::vector<int> named;
    Latest latest;
  };
  struct Site {
    CallPlace place;
    std::deque<Made> untold = {};
  };

  std::deque<Made>& untold(Site& site) { return starts_ ? site.untold : untold_; }
  Site* settled(std::uint64_t alike) {
    for (;;) {
      const std::uint64_t key = sequence_.key_of(alike);
      Site& site = sites_.try_emplace(key, Site{CallPlace(prices_(ranks_))}).first->second;
      auto& calls = untold(site);
      while (calls.size() >= early) {
        const Made made = std::move(calls.front());
        calls.pop_front();
        if (predictor_.learn(made.site->place, made.latest, made.named))
          sequence_.late_at(made.number);
      }
      if (sequence_.key_of(alike) == key) return &site;
    }
  }

  int ranks_;
  bool starts_;
  CallPrices (*prices_)(std::int64_t);
  Predictor predictor_;
  CallSequence sequence_;
  std::deque<Made> untold_;
  std::map<std::uint64_t, Site> sites_;
};

Entries on_time(int ranks, std::uint64_t call, std::int64_t spread) {
  Entries entered;
  for (int r = 0; r < ranks; ++r)
    entered.push_back(std::int64_t(Random::mix(call * 5000 + std::uint64_t(r)) %
                                   std::uint64_t(spread)));
  return entered;
}

Entries with_late(int ranks, std::uint64_t call, const std::vector<int>& late, std::int64_t by) {
  Entries entered = on_time(ranks, call, kMessage / 20);
  for (std::size_t i = 0; i < late.size(); ++i)
    entered[std::size_t(late[i])] += by + std::int64_t(i) * kMessage / 10;
  return entered;
}

// The first of these calls from which on all name those ranks, but for at most one in 64.
int handled_from(const std::vector<std::vector<int>>& named, const std::vector<int>& late) {
  int from = int(named.size()), others = 0;
  while (from > 0 && (named[std::size_t(from - 1)] == late || others < int(named.size()) / 64)) {
    others += named[std::size_t(from - 1)] != late;
    --from;
  }
  while (from < int(named.size()) && named[std::size_t(from)] != late) ++from;
  return from;
}

}  // namespace

TEST_CASE("predict: in a loop a late rank is named from the fourth call on") {
  for (int p : {4, 5, 8, 16, 64, 256, 1024})
    for (double by : {0.45, 1.0, 3.0}) {
      if (p < 8 && by < 1) continue;   // the early ranks' work would not be done by then
      Program program(p);
      std::vector<std::vector<int>> named;
      for (std::uint64_t c = 0; c < 60; ++c)
        named.push_back(program.call(1, with_late(p, c, {p / 3}, std::int64_t(by * kMessage))));
      CAPTURE(p);
      CAPTURE(by);
      CHECK(handled_from(named, {p / 3}) <= 3);
      if (p > 5) CHECK(program.spent_ns < program.usual_ns * 9 / 10);
    }
}

TEST_CASE("predict: two late ranks are named together, the later one last") {
  for (int p : {8, 16, 256}) {
    Program program(p);
    std::vector<std::vector<int>> named;
    for (std::uint64_t c = 0; c < 60; ++c)
      named.push_back(program.call(1, with_late(p, c, {5, 2}, 2 * kMessage)));
    CHECK(handled_from(named, {5, 2}) <= 5);
  }
}

TEST_CASE("predict: late at the first call of a step, named from the third step on") {
  for (int p : {8, 64, 256})
    for (std::uint64_t calls : {2, 5, 20, 160})
      for (bool are_alike : {false, true}) {
        Program program(p);
        std::vector<std::vector<int>> first;
        int others = 0;
        for (std::uint64_t c = 0; c < 30 * calls; ++c) {
          const bool is_first = c % calls == 0;
          const auto named = program.call(are_alike ? 1 : 1 + c % calls,
                                          with_late(p, c, {3}, is_first ? kMessage : 0));
          if (is_first) first.push_back(named);
          else others += !named.empty();
        }
        CAPTURE(p);
        CAPTURE(calls);
        CAPTURE(are_alike);
        CHECK(handled_from(first, {3}) <= 2);
        CHECK(others <= 1);
      }
}

TEST_CASE("predict: late at all calls of a step that are started together") {
  for (int p : {8, 64})
    for (std::uint64_t calls : {2, 5, 20}) {
      Program program(p, true);
      std::vector<std::vector<int>> named;
      for (std::uint64_t c = 0; c < 20 * calls; ++c)
        named.push_back(program.call(1 + c % calls, with_late(p, c, {3}, kMessage)));
      CAPTURE(p);
      CAPTURE(calls);
      CHECK(handled_from(named, {3}) <= int(2 * calls + 2));
    }
}

TEST_CASE("predict: nobody late, or somebody else each time, costs next to nothing") {
  const std::vector<std::function<Entries(int, std::uint64_t)>> patterns = {
      [](int p, std::uint64_t c) { return on_time(p, c, kMessage / 10); },
      [](int p, std::uint64_t c) { return on_time(p, c, kMessage); },
      [](int p, std::uint64_t c) { return on_time(p, c, 10 * kMessage); },
      [](int p, std::uint64_t c) { return with_late(p, c, {int(2 + c % 2)}, 3 * kMessage); },
      [](int p, std::uint64_t c) { return with_late(p, c, {int(c) % p}, 3 * kMessage); },
      [](int p, std::uint64_t c) {
        return with_late(p, c, {int(Random::mix(c) % std::uint64_t(p))}, 3 * kMessage);
      },
      [](int p, std::uint64_t c) { return with_late(p, c, {3}, kMessage / 5); },
      [](int p, std::uint64_t c) { return with_late(p, c, {3}, c % 50 ? 0 : 20 * kMessage); },
      [](int p, std::uint64_t c) {
        return with_late(p, c, {3}, Random::mix(c) % 8 ? 0 : kMessage);
      },
  };
  for (int p : {4, 5, 8, 16, 64})
    for (std::uint64_t calls : {1, 5})
      for (std::size_t pattern = 0; pattern < patterns.size(); ++pattern)
        for (std::uint64_t seed = 0; seed < 10; ++seed) {
          Program program(p);
          for (std::uint64_t c = 0; c < 1000; ++c)
            program.call(1 + c % calls, patterns[pattern](p, seed * 1000 + c));
          CAPTURE(p);
          CAPTURE(calls);
          CAPTURE(pattern);
          CAPTURE(seed);
          CHECK(200 * program.spent_ns <= 201 * program.usual_ns);
        }
}

TEST_CASE("predict: another rank that is late, or none, is followed within six calls") {
  Program program(8);
  std::vector<std::vector<int>> named;
  const auto late = [](std::uint64_t c) {
    return c < 200 ? std::vector{1} : c < 260 ? std::vector{6} : c < 320 ? std::vector<int>{}
                                                                         : std::vector{1};
  };
  for (std::uint64_t c = 0; c < 400; ++c)
    named.push_back(program.call(1, with_late(8, c, late(c), 2 * kMessage)));
  const auto wrong = [&](std::size_t from, std::size_t until) {
    std::size_t last = from;
    for (std::size_t c = from; c < until; ++c)
      if (!named[c].empty() && named[c] != late(c)) last = c + 1;
    return last - from;
  };
  const auto part = [&](std::size_t from, std::size_t until) {
    return std::vector(named.begin() + long(from), named.begin() + long(until));
  };
  CHECK(wrong(200, 260) <= 6);
  CHECK(handled_from(part(200, 250), {6}) <= 6);
  CHECK(wrong(260, 320) <= 6);
  CHECK(handled_from(part(320, 370), {1}) <= 6);
}

TEST_CASE("predict: a rank that is sometimes on time stays named") {
  Program program(8);
  int named = 0;
  for (std::uint64_t c = 0; c < 500; ++c)
    named += !program.call(1, with_late(8, c, {3}, c % 10 == 7 ? 0 : kMessage)).empty();
  CHECK(named > 400);
  CHECK(program.spent_ns < program.usual_ns * 8 / 10);
}

// Its times are those of this machine, whatever the model says.
struct Timed {
  Predictor predictor{8};
  CallPlace place{ring_prices(8)};

  bool call(std::int64_t usual, std::int64_t named) {
    const std::vector<int> late = predictor.late(place);
    predictor.count_call(place);
    predictor.learn(place, latest_of(with_late(8, 1, {1}, 2 * kMessage),
                                     late.empty() ? usual : named), late);
    return !late.empty();
  }
};

TEST_CASE("predict: what turns out slower than naming nobody is tried again, but seldom") {
  Timed slower;
  int named = 0, in_row = 0, longest = 0;
  for (int c = 0; c < 400; ++c) {
    const bool is_named = slower.call(kMessage, 2 * kMessage);
    named += is_named;
    in_row = is_named ? 0 : in_row + 1;
    longest = std::max(longest, in_row);
  }
  CHECK(named > 20);
  CHECK(named < 60);
  CHECK(longest < 40);
}

TEST_CASE("predict: one slow trial does not stop it") {
  Timed timed;
  int named = 0;
  bool was_slow = false;
  for (int c = 0; c < 100; ++c) {
    const bool is_named = timed.call(2 * kMessage, was_slow ? kMessage : 20 * kMessage);
    was_slow |= is_named;
    named += is_named;
  }
  CHECK(named > 90);
}

TEST_CASE("predict: three ranks and fewer, and calls without a price, name nobody") {
  const auto switched = [](Program program, int p) {
    int named = 0;
    for (std::uint64_t c = 0; c < 60; ++c)
      named += !program.call(1, with_late(p, c, {p / 2}, 5 * kMessage)).empty();
    return named;
  };
  for (int p : {1, 2, 3}) CHECK(switched(Program(p), p) == 0);
  CHECK(switched(Program(8), 8) > 50);
  CHECK(switched(Program(8, false, [](std::int64_t) {
    return CallPrices{kMessage, 2 * kMessage, [](const auto&) { return std::nullopt; }};
  }), 8) == 0);
  CHECK(switched(Program(8, false, [](std::int64_t) {
    return CallPrices{kMessage, kMessage, [](const auto&) { return LatePrice{kMessage, 0}; }};
  }), 8) == 0);
  // Work of the other ranks that is not done when the late rank enters counts as left.
  CHECK(switched(Program(8, false, [](std::int64_t) {
    return CallPrices{kMessage, 2 * kMessage,
                      [](const auto&) { return LatePrice{kMessage, 7 * kMessage}; }};
  }), 8) == 0);
}

TEST_CASE("predict: the price is that of the very ranks that would be named, asked for once") {
  static std::vector<std::vector<int>> asked;
  asked.clear();
  Program program(8, false, [](std::int64_t) {
    return CallPrices{kMessage, 2 * kMessage, [](const std::vector<int>& late) {
      asked.push_back(late);
      return LatePrice{kMessage, 0};
    }};
  });
  for (std::uint64_t c = 0; c < 40; ++c) {
    Entries entered(8, 0);
    entered[3] = kMessage;
    entered[5] = 2 * kMessage;
    program.call(1, entered);
  }
  CHECK(asked.size() <= 8);   // two at each of the first places, and in the loop
  for (const auto& late : asked) CHECK((late == std::vector{5} || late == std::vector{3, 5}));
}

// Ranks that decide apart would send messages that do not fit together.
TEST_CASE("predict: equal numbers give equal decisions, and a rank with others is seen") {
  const auto decisions = [](std::uint64_t early, std::int64_t clock) {
    Program program(8);
    program.early = early;
    std::vector<std::vector<int>> all;
    for (std::uint64_t c = 0; c < 300; ++c) {
      Entries entered = with_late(8, c, {c / 40 % 2 ? 4 : 6}, c % 7 ? kMessage : 0);
      entered[2] += clock;
      all.push_back(program.call(1 + c % 3, entered));
    }
    return all;
  };
  CHECK(decisions(2, 0) == decisions(2, 0));
  CHECK(decisions(2, 0) != decisions(1, 0));             // a mutant knows a call earlier
  CHECK(decisions(2, 0) != decisions(2, 2 * kMessage));   // and one measures by its own clock
}
