#include <doctest/doctest.h>

#include <algorithm>
#include <functional>

#include "arrival/predict.hpp"
#include "base/random.hpp"

using namespace paceline;

namespace {

constexpr std::int64_t kMessage = 1'000'000;   // ns

// Prices of a ring, and of a form whose early ranks forward the message and an eighth more.
CallPrices prices(std::int64_t ranks) {
  const std::int64_t usual = 2 * (ranks - 1) * kMessage / ranks;
  return {kMessage, usual, [=](const std::vector<int>& late) -> std::optional<LatePrice> {
    const std::int64_t early = ranks - static_cast<std::int64_t>(late.size());
    return LatePrice{9 * (ranks - 1) * kMessage / (8 * early), (early - 1) * kMessage / early,
                     usual + usual / 5};
  }};
}

// A world whose calls take the model's time, and whose ranks enter at `enters`: ns, by call and
// rank.
struct Trace {
  int ranks;
  std::function<std::int64_t(int call, int rank)> enters;
  Predictor predictor;
  int call = 0, switched = 0, missed = 0;
  std::int64_t seconds_lost = 0;   // ns, compared with naming no rank

  Trace(int p, std::function<std::int64_t(int, int)> when)
      : Trace(p, std::move(when), prices(p)) {}
  Trace(int p, std::function<std::int64_t(int, int)> when, CallPrices expected)
      : ranks(p), enters(std::move(when)), predictor(p, std::move(expected)) {}

  std::vector<std::int64_t> entries() const {
    std::vector<std::int64_t> all;
    for (int r = 0; r < ranks; ++r) all.push_back(enters(call, r));
    return all;
  }

  // From the last arrival on; `late` are the ranks that own nothing.
  static std::int64_t rest(const std::vector<std::int64_t>& entered, const std::vector<int>& late) {
    const auto p = static_cast<std::int64_t>(entered.size());
    const std::int64_t last = *std::max_element(entered.begin(), entered.end());
    if (late.empty()) return 2 * (p - 1) * kMessage / p;
    std::int64_t early = 0;
    for (int r = 0; r < int(p); ++r)
      if (std::find(late.begin(), late.end(), r) == late.end())
        early = std::max(early, entered[std::size_t(r)]);
    const std::int64_t m = p - static_cast<std::int64_t>(late.size());
    const std::int64_t left = std::max<std::int64_t>(0, (m - 1) * kMessage / m - (last - early));
    return 9 * (p - 1) * kMessage / (8 * m) + left;
  }

  void run(int calls) {
    for (const int end = call + calls; call < end; ++call) {
      const std::vector<int> late = predictor.late();
      predictor.count_call();
      const auto entered = entries();
      const std::int64_t last = *std::max_element(entered.begin(), entered.end());
      std::vector<Wait> waits;
      for (std::int64_t at : entered)
        waits.push_back({unpacked(packed(last - at)), unpacked(packed(rest(entered, late)))});
      predictor.learn(waits, late);
      seconds_lost += rest(entered, late) - rest(entered, {});
      if (late.empty()) continue;
      ++switched;
      if (entered[std::size_t(late.back())] != last) ++missed;
    }
  }
};

std::int64_t jitter(std::uint64_t seed, int call, int rank, std::int64_t most) {
  const std::uint64_t mixed = Random::mix(seed ^ Random::mix(std::uint64_t(call) << 16 |
                                                             static_cast<std::uint64_t>(rank)));
  return static_cast<std::int64_t>(mixed % static_cast<std::uint64_t>(most));
}

}  // namespace

TEST_CASE("predict: a wait fits into 15 bits, to one part in 512") {
  for (std::int64_t ns : {0, 1, 1023, 1024, 1025, 4095, 123'456'789}) {
    const std::uint32_t code = packed(ns);
    CHECK(code < 1u << 15);
    CHECK(unpacked(code) <= ns);
    CHECK(ns - unpacked(code) <= ns / 512);
  }
  CHECK(packed(-5) == 0);
  const std::int64_t longest = unpacked(0x7fff);
  CHECK(longest > std::int64_t{30} * 60 * 1'000'000'000);
  CHECK(unpacked(packed(longest)) == longest);
  CHECK(unpacked(packed(longest * 2)) == longest);
  for (std::int64_t ns = 1; ns < longest; ns = ns * 3 / 2 + 1)   // never less for more
    CHECK(unpacked(packed(ns)) <= unpacked(packed(ns + ns / 100 + 1)));
}

TEST_CASE("predict: a rank that is late by a message is named, and it wins a third") {
  for (int late : {0, 3, 7}) {
    Trace trace(8, [&](int call, int r) {
      return (r == late ? kMessage : 0) + jitter(1, call, r, kMessage / 20);
    });
    trace.run(16);
    CHECK(trace.switched > 0);
    CHECK(trace.predictor.late() == std::vector<int>{late});
    const int before = trace.switched;
    trace.run(640);
    CHECK(trace.switched - before == 630);   // every 64th call is a probe
    CHECK(trace.missed == 0);
    CHECK(trace.predictor.evidence().won_ns > kMessage / 2);
    CHECK(trace.predictor.evidence().hits[0] == 32);
  }
}

TEST_CASE("predict: equal numbers give equal decisions, whoever is told them") {
  Trace one(6, [](int call, int r) {
    return jitter(9, call, r, 2 * kMessage) + (r == 4 ? kMessage : 0);
  });
  Trace other = one;
  for (int i = 0; i < 300; ++i) {
    CHECK(one.predictor.late() == other.predictor.late());
    one.run(1);
    other.run(1);
  }
}

TEST_CASE("predict: those who take turns in being late are not named") {
  Trace trace(8, [](int call, int r) { return r == 2 + call % 2 ? kMessage * 3 : 0; });
  trace.run(1000);
  CHECK(trace.switched == 0);
}

TEST_CASE("predict: two who take turns are named together where both are late each time") {
  Trace trace(8, [](int call, int r) {
    return r == 2 || r == 5 ? kMessage * 2 + (r == 2 + 3 * (call % 2)) * kMessage / 20 : 0;
  });
  trace.run(1000);
  const std::vector<int> late = trace.predictor.evidence().late;
  REQUIRE(late.size() == 2);
  CHECK(std::min(late[0], late[1]) == 2);
  CHECK(std::max(late[0], late[1]) == 5);
  CHECK(trace.seconds_lost < 0);
}

TEST_CASE("predict: chance names nobody, or hardly ever, and costs next to nothing") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed)
    for (int p : {4, 5, 8, 16})
      for (std::int64_t spread : {kMessage / 10, kMessage, 10 * kMessage}) {
        Trace trace(p, [&](int call, int r) { return jitter(seed, call, r, spread); });
        trace.run(1000);
        CAPTURE(seed);
        CAPTURE(p);
        CAPTURE(spread);
        CHECK(trace.switched < 100);
        // At most 1 % of the calls' time from their last arrivals on.
        CHECK(trace.seconds_lost < 1000 * Trace::rest({0, 0, 0}, {}) / 100);
      }
}

TEST_CASE("predict: who is hardly the last one is not named, nor who once was very late") {
  Trace hardly(8, [](int, int r) { return r == 3 ? kMessage / 5 : 0; });
  hardly.run(500);
  CHECK(hardly.switched == 0);
  Trace once(8, [](int call, int r) {
    return r != 3 ? 0 : call % 50 == 0 ? 20 * kMessage : 9;
  });
  once.run(500);
  CHECK(once.switched == 0);
}

TEST_CASE("predict: one that recovers is soon no longer named, and another one may be") {
  Trace trace(8, [](int call, int r) {
    return (call < 200 && r == 1) || (call >= 300 && r == 6) ? 2 * kMessage : 0;
  });
  trace.run(200);
  CHECK(trace.predictor.evidence().late == std::vector<int>{1});
  const int before = trace.switched;
  trace.run(100);
  CHECK(trace.switched - before <= 5);   // four wrong ones in a row, and what was decided
  CHECK(trace.predictor.evidence().late.empty());
  trace.run(100);
  CHECK(trace.predictor.evidence().late == std::vector<int>{6});
}

TEST_CASE("predict: what turns out slower than naming nobody is not kept up") {
  Trace trace(8, [](int, int r) { return r == 1 ? 2 * kMessage : 0; });
  int named = 0;
  for (int call = 0; call < 400; ++call) {
    const std::vector<int> late = trace.predictor.late();
    trace.predictor.count_call();
    named += !late.empty();
    std::vector<Wait> waits(8, {2 * kMessage, late.empty() ? kMessage * 7 / 4 : 2 * kMessage});
    waits[1].waited_ns = 0;
    trace.predictor.learn(waits, late);
  }
  CHECK(named > 0);
  CHECK(named < 20);
}

TEST_CASE("predict: three ranks and fewer, and messages of no length, name nobody") {
  for (int p : {1, 2, 3}) {
    Trace trace(p, [](int, int r) { return r == 1 ? 5 * kMessage : 0; });
    trace.run(200);
    CHECK(trace.switched == 0);
  }
  Predictor predictor(4, {.naming = [](const auto&) { return std::nullopt; }});
  predictor.learn({{0, 0}, {0, 0}, {0, 0}, {0, 0}}, {});
  CHECK(predictor.late().empty());
}

TEST_CASE("predict: no rank is named if naming has no price, or a high one") {
  const auto runs = [](auto naming) {
    Trace trace(8, [](int, int r) { return r == 3 ? 2 * kMessage : 0; },
                {kMessage, 7 * kMessage / 4, naming});
    trace.run(60);
    return trace.switched;
  };
  CHECK(runs([](const auto&) -> std::optional<LatePrice> { return {}; }) == 0);
  CHECK(runs([](const auto&) { return LatePrice{2 * kMessage, 0, 2 * kMessage}; }) == 0);
  CHECK(runs([](const auto&) { return LatePrice{kMessage, 0, 2 * kMessage}; }) > 40);
  // Work of the other ranks that is not done when the late rank enters counts as left.
  CHECK(runs([](const auto&) { return LatePrice{kMessage, 3 * kMessage, 2 * kMessage}; }) == 0);
}

TEST_CASE("predict: naming has the price of the very ranks that would be named") {
  std::vector<std::vector<int>> asked;
  const auto naming = [&](const std::vector<int>& late) {
    asked.push_back(late);
    return LatePrice{kMessage, 0, 2 * kMessage};
  };
  Trace trace(8, [](int, int r) { return r == 3 ? kMessage : r == 5 ? 2 * kMessage : 0; },
              {kMessage, 7 * kMessage / 4, naming});
  trace.run(60);
  CHECK(asked == std::vector<std::vector<int>>{{5}, {3, 5}});   // not again while they are the same
}
