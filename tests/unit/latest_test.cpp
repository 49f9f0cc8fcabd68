// The words that tell which ranks entered a call last.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "arrival/latest.hpp"
#include "base/random.hpp"

using namespace paceline;

namespace {

using Waits = ArrivalWords::Waits;

std::vector<ArrivalWords> of_ranks(int ranks, int units, std::uint64_t seed) {
  std::vector<ArrivalWords> all;
  Random random(seed);
  for (int r = 0; r < ranks; ++r)
    all.emplace_back(Waits(random.below(3)), r % units, std::int64_t(random.below(1 << 30)),
                     std::int64_t(random.below(1 << 20)));
  return all;
}

ArrivalWords merged(const std::vector<ArrivalWords>& words) {
  ArrivalWords all = words[0];
  for (const ArrivalWords& one : words) all.merge(one);
  return all;
}

}  // namespace

TEST_CASE("latest: a time fits into 14 bits, to one part in 256") {
  for (std::int64_t ns : {0, 1, 511, 512, 513, 4095, 123'456'789}) {
    const std::uint32_t code = packed(ns);
    CHECK(code < 1u << 14);
    CHECK(unpacked(code) <= ns);
    CHECK(ns - unpacked(code) <= ns / 256);
  }
  CHECK(packed(-5) == 0);
  const std::int64_t longest = unpacked(0x3fff);
  CHECK(longest > std::int64_t{18} * 60 * 1'000'000'000);
  CHECK(unpacked(packed(longest)) == longest);
  CHECK(unpacked(packed(longest * 2)) == longest);
  for (std::int64_t ns = 1; ns < longest; ns = ns * 3 / 2 + 1)   // never less for more
    CHECK(unpacked(packed(ns)) <= unpacked(packed(ns + ns / 100 + 1)));
}

TEST_CASE("latest: words merge in any order, and any number of times") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed)
    for (int units : {1, 2, 5, 11}) {
      std::vector<ArrivalWords> words = of_ranks(11, units, seed);
      const ArrivalWords all = merged(words);
      Random random(seed * 7);
      for (int round = 0; round < 300; ++round)   // each rank learns from another one
        words[random.below(words.size())].merge(words[random.below(words.size())]);
      for (std::size_t i = 0; i < words.size(); ++i)   // and at last from all
        for (const ArrivalWords& one : std::vector(words)) words[i].merge(one);
      for (const ArrivalWords& one : words) CHECK(one == all);
    }
}

TEST_CASE("latest: the last units are told, each by the last of its ranks") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed)
    for (int units : {1, 3, 4, 9}) {
      const std::vector<ArrivalWords> words = of_ranks(18, units, seed);
      std::vector<std::int64_t> least(std::size_t(units), std::int64_t{1} << 40);
      for (std::size_t r = 0; r < words.size(); ++r) {
        std::int64_t& own = least[r % std::size_t(units)];
        own = std::min(own, words[r].latest().units[0].waited_ns);
      }
      const Latest latest = merged(words).latest();
      CHECK(latest.units.size() == std::size_t(std::min(units, ArrivalWords::kUnits)));
      std::vector<std::int64_t> sorted = least;
      std::sort(sorted.begin(), sorted.end());
      for (std::size_t i = 0; i < latest.units.size(); ++i) {
        CHECK(latest.units[i].waited_ns == sorted[i]);
        CHECK(latest.units[i].waited_ns == least[std::size_t(latest.units[i].unit)]);
      }
    }
}

TEST_CASE("latest: one rank that knows nothing, or does not wait, speaks for all") {
  const ArrivalWords any(Waits::before_any, 3, 100, 20), alike(Waits::before_alike, 4, 90, 30);
  ArrivalWords both = any;
  both.merge(alike);
  CHECK(both.waits() == Waits::before_alike);
  CHECK(both.is_known());
  CHECK(both.latest().rest_ns == 30);
  both.merge(ArrivalWords(Waits::before_any));
  CHECK(both.waits() == Waits::before_alike);
  CHECK_FALSE(both.is_known());
  both.merge(ArrivalWords(Waits::no));
  CHECK(both.waits() == Waits::no);
  CHECK_FALSE(ArrivalWords().is_known());
}
