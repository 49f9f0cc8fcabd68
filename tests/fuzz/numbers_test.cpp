// Sums and products that round, cancel and overflow nowhere, and numbers that are hardly any: by
// every kernel, and through every algorithm that reduces.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/random.hpp"
#include "coll/registry.hpp"
#include "fuzz/judge.hpp"
#include "fuzz/loop.hpp"
#include "fuzz/numbers.hpp"
#include "kernels/kernels.hpp"
#include "world/worlds.hpp"

namespace paceline::fuzz {
namespace {

constexpr Type kFloats[] = {Type::f64, Type::f32, Type::f16, Type::bf16};
constexpr Op kOpsOfFloats[] = {Op::sum, Op::average, Op::product, Op::min, Op::max};
constexpr Values kRounding[] = {Values::wild, Values::special};

std::string name_of_case(const Reduction& r) {
  return str(name_of(r.op), " of ", r.ranks, " ", name_of(r.type),
             r.values == Values::special ? ", special" : ", wild");
}

// The first element that a kernel gets wrong, of numbers in all classes that there are.
std::string flaw_of_kernel(Reduce kernel, const Reduction& r, std::size_t count) {
  const std::size_t size = size_of(r.type), n = std::size_t(r.ranks);
  std::vector<std::vector<unsigned char>> bytes(n, std::vector<unsigned char>(count * size));
  std::vector<std::vector<std::uint64_t>> bits(count, std::vector<std::uint64_t>(n));
  std::vector<const void*> sources(n);
  for (std::size_t k = 0; k < n; ++k) {
    for (std::size_t i = 0; i < count; ++i) {
      bits[i][k] = number(r, int(k), draw(count, k, i), draw(n, i));
      std::memcpy(bytes[k].data() + i * size, &bits[i][k], size);
    }
    sources[k] = bytes[k].data();
  }
  std::vector<unsigned char> sum(count * size);
  kernel(sum.data(), sources.data(), r.ranks, count);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t got = 0;
    std::memcpy(&got, sum.data() + i * size, size);
    if (const std::string bad = flaw(r, bits[i], got); !bad.empty())
      return str(name_of_case(r), ": element ", i, " ", bad);
  }
  return {};
}

void for_each_reduction(int ranks, const std::function<void(const Reduction&)>& visit) {
  for (const Type type : kFloats)
    for (const Op op : kOpsOfFloats)
      for (const Values values : kRounding) visit({type, op, values, ranks});
}

TEST_CASE("every kernel's sums and products are as near as their additions allow") {
  for (const int n : {2, 3, 5, 16})
    for_each_reduction(n, [](const Reduction& r) {
      if (r.op == Op::average) return;
      for (const Target target : targets()) {
        const std::string bad = flaw_of_kernel(reduce_kernel(r.type, r.op, target), r, 517);
        CHECK_MESSAGE(bad.empty(), name_of(target), ": ", bad);
      }
    });
}

// One call of an algorithm, by itself and repeated: a repetition must give the same bits, unless
// sums follow the order of arrival.
Program program_of(const Algorithm& a, const Reduction& r, std::size_t count, std::uint64_t seed) {
  Program program{.seed = seed, .ranks = r.ranks};
  if (a.claims()) program.numbers = Numbers::fast;
  program.groups.emplace_back();
  for (int rank = 0; rank < r.ranks; ++rank) program.groups[0].push_back(rank);
  Invocation call;
  call.collective = a.collective;
  call.algorithm = a.name;
  call.type = r.type;
  call.op = r.op;
  call.values = r.values;
  call.count = count;
  call.root = r.ranks - 1;
  call.shared = a.uses(Access::symmetric);
  call.data = draw(seed, 11);
  program.calls = {call, call};
  if (!a.claims()) program.calls[1].same_as = 0;
  program.actions = {{Action::Kind::begin, 0}, {Action::Kind::begin, 1}};
  return program;
}

bool takes(const Algorithm& a, int ranks) {
  Problem problem{.collective = a.collective, .ranks = ranks, .root = ranks - 1};
  problem.one_node = a.uses(Access::staging) || a.uses(Access::symmetric);
  problem.symmetric = a.uses(Access::symmetric);
  problem.fast = a.claims();
  return has_op(a.collective) && !why_not(a, problem);
}

TEST_CASE("through every algorithm, too, and all ranks have the same bits, twice") {
  int runs = 0;
  for (const Algorithm* a : registry())
    for (const int p : {2, 3, 5, 8}) {
      if (!takes(*a, p)) continue;
      for_each_reduction(p, [&](const Reduction& r) {
        const auto seed = static_cast<std::uint64_t>(++runs);
        // By turns, unless there is time for all of them.
        if (seed % test::by_length<std::uint64_t>(29, 17, 1) != 0) return;
        Faults faults = weather(seed);
        faults.stages = a->uses(Access::staging) || a->uses(Access::symmetric);
        const std::string bad = play_loop(program_of(*a, r, 61, seed), faults).trouble();
        CHECK_MESSAGE(bad.empty(), a->name, ", ", name_of_case(r), ": ", bad);
      });
    }
  CHECK(runs > 1000);
}

TEST_CASE("sums are exact where floating point is not") {
  CHECK(exact_sum({1, 1e100, 1, -1e100}) == 2);
  CHECK(exact_sum({1e16, 1, 1, -1e16}) == 2);
  CHECK(exact_sum({0x1p-1074, 1, -1}) == 0x1p-1074);
  CHECK(exact_sum({0.1, 0.2, -0.3}) == 0x1p-55);
  CHECK(exact_sum({}) == 0);
  Random random(3);
  std::vector<double> terms;
  for (int i = 0; i < 200; ++i) {
    const double x = std::ldexp(double(random.next() >> 11), int(random.below(200)) - 100);
    terms.insert(terms.begin() + std::ptrdiff_t(random.below(terms.size() + 1)), x);
    terms.insert(terms.begin() + std::ptrdiff_t(random.below(terms.size() + 1)), -x);
  }
  CHECK(exact_sum(terms) == 0);
}

template <class T, class Combine>
void combine_all(void* dst, const void* const* sources, int n, std::size_t count, Combine combine) {
  for (std::size_t i = 0; i < count; ++i) {
    T sum = static_cast<const T*>(sources[0])[i];
    for (int k = 1; k < n; ++k) sum = combine(sum, static_cast<const T*>(sources[k])[i]);
    static_cast<T*>(dst)[i] = sum;
  }
}

void flushes_to_zero(void* dst, const void* const* sources, int n, std::size_t count) {
  const auto flushed = [](float x) {
    return std::fabs(x) < std::numeric_limits<float>::min() ? 0 * x : x;
  };
  combine_all<float>(dst, sources, n, count,
                     [&](float a, float b) { return flushed(flushed(a) + flushed(b)); });
}
void adds_in_half(void* dst, const void* const* sources, int n, std::size_t count) {
  combine_all<double>(dst, sources, n, count,
                      [](double a, double b) { return double(float(a) + float(b)); });
}
void forgets_signs_of_zeros(void* dst, const void* const* sources, int n, std::size_t count) {
  combine_all<double>(dst, sources, n, count, [](double a, double b) { return a + b + 0.0; });
}
void ignores_nan(void* dst, const void* const* sources, int n, std::size_t count) {
  combine_all<double>(dst, sources, n, count, [](double a, double b) { return b > a ? b : a; });
}
void loses_last_source(void* dst, const void* const* sources, int n, std::size_t count) {
  reduce_kernel(Type::f32, Op::sum)(dst, sources, n - 1, count);
}

TEST_CASE("wrong sums are noticed") {
  const auto flaw_of = [](const Reduction& r, Reduce mutant) {
    return flaw_of_kernel(mutant, r, 200);
  };
  const Values special = Values::special, wild = Values::wild;
  CHECK(flaw_of({Type::f32, Op::sum, special, 3}, flushes_to_zero) != "");
  CHECK(flaw_of({Type::f64, Op::sum, wild, 3}, adds_in_half) != "");
  CHECK(flaw_of({Type::f64, Op::sum, special, 2}, forgets_signs_of_zeros) != "");
  CHECK(flaw_of({Type::f64, Op::max, special, 2}, ignores_nan) != "");
  CHECK(flaw_of({Type::f32, Op::sum, wild, 4}, loses_last_source) != "");
  const auto right = [](Type type, Op op) { return reduce_kernel(type, op); };
  CHECK(flaw_of({Type::f32, Op::sum, wild, 3}, right(Type::f32, Op::product)) != "");
  CHECK(flaw_of({Type::f32, Op::min, special, 3}, right(Type::f32, Op::max)) != "");
}

}  // namespace
}  // namespace paceline::fuzz
