// Every kernel of every target against a scalar reference that shares no line with it.
//
// The expected bits are compared, NaN and signed zeros included; so targets that agree with the
// reference agree with each other. The same check must reject the mutants at the end.
#include "kernels/kernels.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "kernels/table.hpp"
#include "kernels_reference.hpp"

using namespace paceline;
using namespace paceline::numbers;

namespace {

struct Placement {
  std::size_t shift;   // bytes; buffers are displaced by different multiples of it
  int alias;           // the source that is also the destination, or -1
  int targets = 1;     // further ones are the next sources, or no source either
  int divisor = 1;     // of an average
};

void call(Reduce kernel, const std::vector<void*>& targets, const std::vector<const void*>& sources,
          std::size_t count, int) {
  kernel(targets[0], sources.data(), static_cast<int>(sources.size()), count);
}

void call(ReduceCopy kernel, const std::vector<void*>& targets,
          const std::vector<const void*>& sources,
          std::size_t count, int divisor) {
  kernel(targets.data(), static_cast<int>(targets.size()), sources.data(),
         static_cast<int>(sources.size()), count, divisor);
}

// All buffers lie in one piece of memory: comparing it as a whole also sees a write past the end
// and a changed source.
template <class Kernel>
bool agrees(Kernel kernel, const Data& data, Placement where) {
  const std::size_t size = data.expected.size(), slot = (size + 63) / 64 * 64 + 256;
  const std::size_t n = data.sources.size(), others = n + std::size_t(where.targets);
  Bytes memory(others * slot + 64, 0xa5);
  const std::size_t start = 64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64;
  const auto place = [&](std::size_t k) { return start + k * slot + (k + 1) % 4 * where.shift; };
  std::vector<const void*> sources(n);
  for (std::size_t k = 0; k < n; ++k) {
    sources[k] = memory.data() + place(k);
    std::copy(data.sources[k].begin(), data.sources[k].end(), memory.data() + place(k));
  }
  Bytes wanted = memory;
  std::vector<void*> targets;
  for (int t = 0; t < where.targets; ++t) {
    const std::size_t k = where.alias < 0 ? n : static_cast<std::size_t>(where.alias);
    targets.push_back(memory.data() + place((k + std::size_t(t)) % others));
    std::copy(data.expected.begin(), data.expected.end(),
              wanted.data() + place((k + std::size_t(t)) % others));
  }
  call(kernel, targets, sources, data.count, where.divisor);
  return memory == wanted;
}

constexpr std::size_t kCounts[] = {0,  1,  2,  3,  7,  15,  16,   17,
                                   31, 33, 63, 64, 65, 127, 1000, 8193};

// The first case in which one of the kernels is wrong, or nothing.
template <class Kernel>
std::string flaw(Type type, Op op, const std::vector<Kernel>& kernels) {
  const std::size_t size = size_of(type), shifts[] = {0, size, 2 * size, 3 * size, 1};
  for (const int n : {1, 2, 3, 5, 9})
    for (const std::size_t count : kCounts) {
      if (count > 1000 && n > 3) continue;
      const Data data = with_expected(drawn(type, {n, count}), op);
      int turn = static_cast<int>(count);
      for (const std::size_t shift : shifts)
        for (int alias = -1; alias < n; ++alias) {
          const bool in_turn = alias == ++turn % (n + 1) - 1;
          if ((shift != 0 || count > 127) && !in_turn && alias != -1) continue;
          for (std::size_t i = 0; i < kernels.size(); ++i)
            for (int several =
                 1; several <= (std::is_same_v<Kernel, ReduceCopy> ? 3 : 1); ++several)
              if (!agrees(kernels[i], data, {shift, alias, several}))
                return str(name_of(op), " of ", n, " x ", count, " ", name_of(type), ", shift ",
                           shift, ", dst is source ", alias, ", ", several, " targets, kernel ", i);
        }
    }
  return "";
}

std::vector<Reduce> all_targets(Type type, Op op) {
  std::vector<Reduce> kernels;
  for (const Target target : targets()) kernels.push_back(reduce_kernel(type, op, target));
  return kernels;
}

std::vector<ReduceCopy> all_targets_of_reduce_copy(Type type, Op op) {
  std::vector<ReduceCopy> kernels;
  for (const Target target : targets()) kernels.push_back(reduce_copy_kernel(type, op, target));
  return kernels;
}

template <class Body>
void for_each_defined(Body body) {
  for (int t = 0; t < kTypes; ++t)
    for (int o = 0; o < kOps; ++o)
      if (is_defined(Op(o), Type(t))) body(Type(t), Op(o));
}

Bytes divided(Type type, Bytes numbers, int divisor) {
  const std::size_t size = size_of(type);
  for (std::size_t i = 0; i < numbers.size() / size; ++i) {
    const std::uint64_t bits = quotient(type, bits_at(numbers, i, size), divisor);
    std::memcpy(numbers.data() + i * size, &bits, size);
  }
  return numbers;
}

// All but bool have averages.
std::vector<Type> averaged() {
  std::vector<Type> types;
  for (int t = 0; t < kTypes; ++t)
    if (is_defined(Op::average, Type(t))) types.push_back(Type(t));
  return types;
}

}  // namespace

TEST_CASE("kernels: every type, operation and target") {
  for_each_defined([](Type type, Op op) { CHECK(flaw(type, op, all_targets(type, op)) == ""); });
}

TEST_CASE("kernels: into several targets at once") {
  for_each_defined(
      [](Type type, Op op) { CHECK(flaw(type, op, all_targets_of_reduce_copy(type, op)) == ""); });
}

TEST_CASE("kernels: every pair of special values") {
  for_each_defined([](Type type, Op op) {
    const std::vector<std::uint64_t> list = specials(type);
    const std::size_t size = size_of(type), n = list.size();
    Data data{type, n * n, {Bytes(n * n * size), Bytes(n * n * size)}, {}};
    for (std::size_t i = 0; i < n * n; ++i) {
      std::memcpy(data.sources[0].data() + i * size, &list[i / n], size);
      std::memcpy(data.sources[1].data() + i * size, &list[i % n], size);
    }
    data = with_expected(data, op);
    for (const Reduce kernel : all_targets(type, op))
      CHECK_MESSAGE(agrees(kernel, data, {0, -1}), name_of(op), " ", name_of(type));
    for (const ReduceCopy kernel : all_targets_of_reduce_copy(type, op))
      CHECK_MESSAGE(agrees(kernel, data, {0, 0, 2}), name_of(op), " ", name_of(type));
  });
}

// Adding -0.0 changes nothing, so every number must come back; adding noise must round right.
TEST_CASE("kernels: every 16-bit float is read and written right") {
  Random random(7);
  for (const Type type : {Type::f16, Type::bf16})
    for (const bool noise : {false, true}) {
      Data data{type, 65536, {Bytes(131072), Bytes(131072)}, {}};
      for (std::size_t i = 0; i < data.count; ++i) {
        const std::uint64_t bits[] = {i, noise ? random() : 0x8000u};
        for (const std::size_t k : {0u, 1u})
          std::memcpy(data.sources[k].data() + 2 * i, &bits[k], 2);
      }
      for (const Op op : {Op::sum, Op::product, Op::min, Op::max}) {
        data = with_expected(data, op);
        for (const Reduce kernel : all_targets(type, op))
          CHECK_MESSAGE(agrees(kernel, data, {0, 0}), name_of(op), " ", name_of(type), " ", noise);
      }
    }
}

// Buffers of exactly the right size: an address sanitizer sees a read past the end.
TEST_CASE("kernels: nothing is read beyond the end") {
  for_each_defined([](Type type, Op op) {
    for (const std::size_t count : kCounts) {
      const Data data = drawn(type, {3, count});
      Bytes dst(count * size_of(type));
      const void* sources[] = {data.sources[0].data(), data.sources[1].data(),
                               data.sources[2].data()};
      Bytes also = dst;
      void* targets[] = {dst.data(), also.data()};
      for (const Reduce kernel : all_targets(type, op))
        for (const int n : {2, 3}) kernel(dst.data(), sources, n, count);
      for (const ReduceCopy kernel : all_targets_of_reduce_copy(type, op))
        for (const int n : {1, 2, 3}) kernel(targets, 2, sources, n, count, 1);
    }
  });
}

TEST_CASE("kernels: divide") {
  CHECK(averaged().size() == kTypes - 1);
  for (const Type type : averaged())
    for (const std::size_t count : kCounts)
      for (const int divisor : {1, 2, 3, 7, 16, 1000003}) {
        const std::size_t size = size_of(type);
        const Data data = drawn(type, {1, count});
        const Bytes wanted = divided(type, data.sources[0], divisor);
        for (const Target target : targets()) {
          Bytes got(count * size + 1, 0xa5);   // off by one: no alignment is needed
          std::copy(data.sources[0].begin(), data.sources[0].end(), got.begin() + 1);
          kernel_table(target).divide[static_cast<int>(type)](got.data() + 1, count, divisor);
          CHECK_MESSAGE(std::equal(wanted.begin(), wanted.end(), got.begin() + 1), name_of(type),
                        " / ", divisor, " on ", name_of(target));
        }
        Bytes best = data.sources[0];
        divide(best.data(), type, count, divisor);
        CHECK(best == wanted);
      }
}

TEST_CASE("kernels: averages into several targets are sums that were divided") {
  for (const Type type : averaged())
    for (const int n : {2, 3, 5})
      for (const std::size_t count : {1, 7, 33, 127, 1000})
        for (const int divisor : {1, 2, 3, 8}) {
          Data data = with_expected(drawn(type, {n, count}), Op::sum);
          data.expected = divided(type, data.expected, divisor);
          for (const ReduceCopy kernel : all_targets_of_reduce_copy(type, Op::average))
            for (const int several : {1, 2, 3})
              CHECK_MESSAGE(agrees(kernel, data, {0, 0, several, divisor}), n, " x ", count, " ",
                            name_of(type), " / ", divisor, " into ", several);
        }
}

TEST_CASE("kernels: copies, also past the caches") {
  for (const Target target : targets()) {
    const KernelTable& table = kernel_table(target);
    for (const auto kernel : {table.copy, table.stream})
      for (const std::size_t bytes : {0, 1, 63, 64, 100, 511, 512, 513, 1024, 4099})
        for (const std::size_t from : {0, 1, 60})
          for (const std::size_t to : {0, 4, 63}) {
            Bytes source(from + bytes), dst(to + bytes + 64, 0xa5);
            for (std::size_t i = 0; i < bytes; ++i)
              source[from + i] = static_cast<unsigned char>(i * 131 + i / 256);
            Bytes wanted = dst;
            std::copy(source.begin() + std::ptrdiff_t(from), source.end(),
                      wanted.begin() + std::ptrdiff_t(to));
            kernel(dst.data() + to, source.data() + from, bytes);
            table.nontemporal_fence();
            CHECK_MESSAGE(dst == wanted, bytes, " from ", from, " to ", to, ", ", name_of(target));
          }
  }
}

TEST_CASE("kernels: what is not defined is refused") {
  CHECK_THROWS_AS((void)reduce_kernel(Type::f32, Op::bit_and), Error);
  CHECK_THROWS_AS((void)reduce_copy_kernel(Type::f32, Op::bit_and), Error);
  CHECK_THROWS_AS((void)reduce_kernel(Type::boolean, Op::average, Target::portable), Error);
  float number = 1;
  CHECK_THROWS_AS(divide(&number, Type::boolean, 1, 2), Error);
  CHECK_THROWS_AS(divide(&number, Type::f32, 1, 0), Error);
  for (const Target target : {Target::portable, Target::avx2, Target::avx512})
    if (std::find(targets().begin(), targets().end(), target) == targets().end())
      CHECK_THROWS_AS((void)kernel_table(target), Error);
  for (int t = 0; t < kTypes; ++t)
    for (int o = 0; o < kOps; ++o)
      CHECK((kernel_table(targets().back()).reduce[t][o] != nullptr) ==
            is_defined(Op(o), Type(t)));
  CHECK(targets().front() == Target::portable);
  const Reduce best = reduce_kernel(Type::f32, Op::sum, targets().back());
  CHECK((reduce_kernel(Type::f32, Op::sum) == best));
}

namespace {

// A mutant is the right kernel with one thing wrong.
template <Type type, Op op>
struct Mutant {
  static void right(void* dst, const void* const* sources, int n, std::size_t count) {
    reduce_kernel(type, op)(dst, sources, n, count);
  }
  static void forgets_last(void* dst, const void* const* sources, int n, std::size_t count) {
    right(dst, sources, n, count - (count > 64));
  }
  static void writes_past_end(void* dst, const void* const* sources, int n, std::size_t count) {
    right(dst, sources, n, count);
    static_cast<unsigned char*>(dst)[count * size_of(type)] = 0;
  }
  static void drops_last_source(void* dst, const void* const* sources, int n, std::size_t count) {
    right(dst, sources, n > 8 ? n - 1 : n, count);
  }
  // Correct except for the order, which rounding must reveal.
  static void turns_order(void* dst, const void* const* sources, int n, std::size_t count) {
    std::vector<const void*> turned(sources, sources + n);
    if (n > 2) std::reverse(turned.begin(), turned.end());
    right(dst, turned.data(), n, count);
  }
  // Right for wide types; 16-bit floats are rounded at every step.
  static void goes_by_passes(void* dst, const void* const* sources, int n, std::size_t count) {
    Bytes sum(count * size_of(type));
    right(sum.data(), sources, 1, count);
    for (int k = 1; k < n; ++k) {
      const void* pair[] = {sum.data(), sources[k]};
      right(sum.data(), pair, 2, count);
    }
    right(dst, std::vector<const void*>{sum.data()}.data(), 1, count);
  }
  static void spoils_source(void* dst, const void* const* sources, int n, std::size_t count) {
    right(dst, sources, n, count);
    if (count > 0 && sources[0] != dst)
      static_cast<unsigned char*>(const_cast<void*>(sources[0]))[0] ^= 1;
  }
};

// One target after the other: wrong where the first is a source.
void spreads_by_passes(void* const* targets, int target_count, const void* const* sources, int n,
                       std::size_t count, int) {
  for (int k = 0; k < target_count; ++k)
    reduce_kernel(Type::f32, Op::sum)(targets[k], sources, n, count);
}
void spreads_to_two(void* const* targets, int target_count, const void* const* sources, int n,
                    std::size_t count, int) {
  reduce_copy_kernel(Type::f32, Op::sum)(targets, std::min(target_count, 2), sources, n, count, 1);
}

template <bool ordered>
void max_of_floats(void* dst, const void* const* sources, int n, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    float most = 0, next = 0;
    std::memcpy(&most, static_cast<const char*>(sources[0]) + 4 * i, 4);
    for (int k = 1; k < n; ++k) {
      std::memcpy(&next, static_cast<const char*>(sources[k]) + 4 * i, 4);
      most = ordered ? (next > most ? next : most) : std::fmax(most, next);
    }
    std::memcpy(static_cast<char*>(dst) + 4 * i, &most, 4);
  }
}

}  // namespace

TEST_CASE("kernels: mutants are rejected") {
  using Kernels = std::vector<Reduce>;
  using Floats = Mutant<Type::f32, Op::sum>;
  CHECK(flaw(Type::f32, Op::sum, Kernels{Floats::right}) == "");
  for (const Reduce mutant : {Floats::forgets_last, Floats::writes_past_end, Floats::turns_order,
                              Floats::drops_last_source, Floats::spoils_source})
    CHECK(flaw(Type::f32, Op::sum, Kernels{mutant}) != "");
  CHECK(flaw(Type::f32, Op::sum, Kernels{Floats::goes_by_passes}) == "");
  CHECK(flaw(Type::bf16, Op::sum, Kernels{Mutant<Type::bf16, Op::sum>::goes_by_passes}) != "");
  CHECK(flaw(Type::f16, Op::sum, Kernels{Mutant<Type::f16, Op::sum>::goes_by_passes}) != "");
  CHECK(flaw(Type::f32, Op::max, Kernels{max_of_floats<true>}) != "");    // loses NaN
  CHECK(flaw(Type::f32, Op::max, Kernels{max_of_floats<false>}) != "");   // likewise
  CHECK(flaw(Type::f32, Op::sum, all_targets_of_reduce_copy(Type::f32, Op::sum)) == "");
  for (const ReduceCopy mutant : {spreads_by_passes, spreads_to_two})
    CHECK(flaw(Type::f32, Op::sum, std::vector<ReduceCopy>{mutant}) != "");
  CHECK(flaw(Type::f32, Op::min, Kernels{Mutant<Type::f32, Op::max>::right}) != "");
  CHECK(flaw(Type::i32, Op::max, Kernels{Mutant<Type::u32, Op::max>::right}) != "");
  CHECK(flaw(Type::boolean, Op::sum, Kernels{Mutant<Type::u8, Op::sum>::right}) != "");
  CHECK(flaw(Type::boolean, Op::bit_or, Kernels{Mutant<Type::u8, Op::bit_or>::right}) != "");
}
