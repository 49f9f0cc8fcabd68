// Figures from looks at a link: noise must not hide that announced messages stall.
#include "machine/link_fit.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>

#include "base/random.hpp"
#include "tune/choose.hpp"

using namespace paceline;

namespace {

constexpr int kLooks = 4, kSeeds = 1000;
constexpr double kAlphaS = 170e-6;
constexpr std::size_t kMib = 1u << 20;
constexpr MessageBytes kBytes{8 << 10, 16 << 10, 32 << 10};

// Times of a byte without noise, and the factor of a stall for large messages.
struct Truth {
  double small = 40e-9, modest = 40e-9, medium = 40e-9, large = 40e-9;
  int stalls_percent = 0;   // of the looks at large ones
  double stall = 1.5;
};

// Others' work makes every fifth look longer, by up to as much again; now and then by far more.
LinkSamples looked(const Truth& truth, Random& random) {
  const auto noise = [&] {
    const std::size_t kind = random.below(100);
    return kind < 2 ? 5 : kind < 20 ? 1 + double(random.below(100)) / 100 : 1;
  };
  LinkSamples out;
  for (int i = 0; i < kLooks; ++i) {
    const bool stalls = int(random.below(100)) < truth.stalls_percent;
    out.s_per_byte[0].push_back(truth.small * noise());
    out.s_per_byte[1].push_back(truth.modest * noise());
    out.s_per_byte[2].push_back(truth.medium * noise());
    out.s_per_byte[3].push_back(truth.large * noise() * (stalls ? truth.stall : 1));
  }
  return out;
}

// The former rule.
LinkFit by_the_least(const LinkSamples& looks, double alpha_s) {
  const auto least = [&](std::size_t k) {
    return *std::min_element(looks.s_per_byte[k].begin(), looks.s_per_byte[k].end());
  };
  return {alpha_s, least(0), least(1) / least(0), least(2) / least(0), least(3) / least(0)};
}

// Returns the number of seeds for which the messages of a ring of 9 ranks have least to most bytes.
int messages_between(std::size_t least, std::size_t most, const Truth& truth,
                     const std::function<LinkFit(const LinkSamples&, double)>& rule) {
  int found = 0;
  Problem problem;
  problem.collective = Collective::allreduce;
  problem.ranks = 9;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    Random random(std::uint64_t(seed) << 32);
    Machine machine;
    machine.gamma_s_per_byte = 1e-10;
    machine.across = link_of(rule(looked(truth, random), kAlphaS), kBytes, 9);
    const Choice choice = choose(problem, {4 * kMib, machine}, {"ring"});
    const std::size_t pieces = choice.cut.whole_tail ? 1 : std::size_t(choice.cut.segments);
    const std::size_t message = 4 * kMib / 9 / pieces;
    found += message >= least && message <= most;
  }
  return found;
}

}  // namespace

TEST_CASE("figures: noise does not hide that announced messages stall") {
  const Truth open_mpi{.stalls_percent = 80};
  CHECK(messages_between(4 << 10, 32 << 10, open_mpi, fit_link) >= kSeeds * 98 / 100);
  CHECK(messages_between(4 << 10, 32 << 10, open_mpi, by_the_least) < kSeeds / 2);
}

TEST_CASE("figures: what of alpha is there because all send") {
  CHECK(contention(100e-6, 100e-6, 3) == 0);
  CHECK(contention(100e-6, 130e-6, 3) == 0);   // noise
  // Of three ranks, the messages of two others; a byte alone is not quite alone.
  CHECK(contention(100e-6, 60e-6, 3) == doctest::Approx(0.6));
  CHECK(contention(100e-6, 75e-6, 2) == doctest::Approx(0.5));
  CHECK(contention(100e-6, 1e-6, 2) == doctest::Approx(0.7));
  CHECK(contention(100e-6, 0, 3) == 0);   // no rank has looked
}

TEST_CASE("figures: a lone message may take less than its part of a train, not more") {
  LinkFit found{.alpha_s = 1e-4,
                .beta_s_per_byte = 4e-8,
                .modest_ratio = 1,
                .medium_ratio = 1,
                .large_ratio = 1};
  const auto lone = [&](double lone_s) {
    found.lone_s = lone_s;
    return link_of(found, kBytes, 3).lone_beta_s_per_byte;
  };
  CHECK(lone(0) == 0);   // not known
  CHECK(lone(1e-4 + kBytes.small * 2e-8) == doctest::Approx(2e-8));
  CHECK(lone(1e-4 + kBytes.small * 9e-8) == doctest::Approx(4e-8));
  CHECK(lone(0.5e-4) == doctest::Approx(4e-9));
}

TEST_CASE("figures: pieces are of the greatest length that needs no announcement") {
  const Truth open_mpi{.large = 55e-9};
  CHECK(messages_between(16 << 10, 32 << 10, open_mpi, fit_link) > kSeeds * 8 / 10);
  const Truth impi{.medium = 55e-9, .large = 60e-9};
  CHECK(messages_between(8 << 10, 16 << 10, impi, fit_link) > kSeeds * 8 / 10);
  const Truth others{.modest = 55e-9, .medium = 55e-9, .large = 60e-9};
  CHECK(messages_between(4 << 10, 8 << 10, others, fit_link) > kSeeds * 8 / 10);
}

TEST_CASE("figures: who does not mind long messages gets few pieces, or such as cost little") {
  const Truth none;
  CHECK(messages_between(64 << 10, kMib, none, fit_link) > kSeeds / 2);
  CHECK(messages_between(16 << 10, kMib, none, fit_link) > kSeeds * 9 / 10);
}

TEST_CASE("figures: a large message is what a link carries in 10 ms") {
  CHECK(large_bytes(8 / 0.05e9) == 256u << 10);   // 50 Mbit/s
  CHECK(large_bytes(8 / 0.2e9) == 256u << 10);
  CHECK(large_bytes(8 / 0.5e9) == doctest::Approx(625'000));
  CHECK(large_bytes(8 / 1e9) == 1u << 20);
  CHECK(large_bytes(8 / 100e9) == 1u << 20);
}

TEST_CASE("figures: of looks that agree they say what these say") {
  LinkSamples looks;
  for (std::size_t k = 0; k < kLengths; ++k)
    looks.s_per_byte[k].assign(kLooks, 40e-9 * double(k + 1));
  const LinkFit found = fit_link(looks, kAlphaS);
  CHECK(found.alpha_s == kAlphaS);
  CHECK(found.beta_s_per_byte == doctest::Approx(40e-9));
  CHECK(found.modest_ratio == doctest::Approx(2));
  CHECK(found.medium_ratio == doctest::Approx(3));
  CHECK(found.large_ratio == doctest::Approx(4));
}
