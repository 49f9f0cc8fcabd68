// A scalar reference for the kernels, and data that reveal wrong results.
//
// Only kernels_test.cpp, fuzz/numbers.cpp and world/sums.hpp include it. Floats are taken apart and
// put together as the standard describes the formats, integers are combined modulo 2^64: no line is
// shared with src/kernels.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "base/types.hpp"

namespace paceline::numbers {

using Bytes = std::vector<unsigned char>;
using Random = std::mt19937_64;

// ---------------------------------------------------------------------------------- reference

inline std::uint64_t bits_at(const Bytes& from, std::size_t index, std::size_t size) {
  std::uint64_t bits = 0;   // little-endian, as are all targets that the tests run on
  std::memcpy(&bits, from.data() + index * size, size);
  return bits;
}

// A binary floating format as the standard describes it: 1 + exponent + fraction bits.
struct Format {
  int exponent_bits, fraction_bits;
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
};

inline Format format_of(Type type) {
  if (type == Type::f16) return {5, 10};
  if (type == Type::bf16) return {8, 7};
  return type == Type::f32 ? Format{8, 23} : Format{11, 52};
}

inline double decode(Type type, std::uint64_t bits) {
  const Format f = format_of(type);
  const std::uint64_t fraction = bits & ((1ull << f.fraction_bits) - 1);
  const int top = (1 << f.exponent_bits) - 1;
  const int exponent = static_cast<int>(bits >> f.fraction_bits) & top;
  double value = 0;
  if (exponent == top) value = fraction ? std::nan("") : std::numeric_limits<double>::infinity();
  else if (exponent == 0)
    value = std::ldexp(static_cast<double>(fraction), 1 - f.bias() - f.fraction_bits);
  else
    value = std::ldexp(static_cast<double>(fraction | 1ull << f.fraction_bits),
                       exponent - f.bias() - f.fraction_bits);
  return bits >> (f.exponent_bits + f.fraction_bits) & 1 ? -value : value;
}

// Rounds to nearest even by counting in units of the last place.
inline std::uint64_t encode(Type type, double value) {
  const Format f = format_of(type);
  const std::uint64_t infinity = ((1ull << f.exponent_bits) - 1) << f.fraction_bits;
  if (std::isnan(value)) return infinity | 1ull << (f.fraction_bits - 1);
  const std::uint64_t sign =
      std::signbit(value) ? 1ull << (f.exponent_bits + f.fraction_bits) : 0;
  const double size = std::fabs(value);
  if (std::isinf(size)) return sign | infinity;
  const int least = 1 - f.bias();
  const int exponent = size == 0 ? least : std::max(least, std::ilogb(size));
  const double units = std::nearbyint(std::ldexp(size, f.fraction_bits - exponent));
  // Units that carry into the next exponent, or are subnormal, come out right by addition.
  const std::uint64_t bits = static_cast<std::uint64_t>(units) +
                             (static_cast<std::uint64_t>(exponent - least) << f.fraction_bits);
  return sign | std::min(bits, infinity);
}

inline double combined(Op op, double a, double b) {
  const bool both_zero = a == 0 && b == 0;
  switch (op) {
    case Op::product: return a * b;
    case Op::min:
      if (std::isnan(a) || std::isnan(b)) return std::nan("");
      return both_zero ? (std::signbit(a) ? a : b) : std::fmin(a, b);
    case Op::max:
      if (std::isnan(a) || std::isnan(b)) return std::nan("");
      return both_zero ? (std::signbit(a) ? b : a) : std::fmax(a, b);
    case Op::logical_and: return a != 0 && b != 0;
    case Op::logical_or: return a != 0 || b != 0;
    case Op::logical_xor: return (a != 0) != (b != 0);
    default: return a + b;
  }
}

// Sums and products of two float32 round correctly through double (53 >= 2 * 24 + 2 bits).
inline double rounded_to_arithmetic(Type type, double value) {
  return type == Type::f64 ? value : static_cast<double>(static_cast<float>(value));
}

inline std::uint64_t reference_float(Type type, Op op, const std::vector<std::uint64_t>& values) {
  double sum = decode(type, values[0]);
  for (std::size_t k = 1; k < values.size(); ++k)
    sum = rounded_to_arithmetic(type, combined(op, sum, decode(type, values[k])));
  return encode(type, sum);
}

inline bool is_signed_integer(Type type) { return name_of(type).starts_with("int"); }

// Integers modulo 2^64, sign-extended; the store keeps the low bytes.
inline std::uint64_t combined(Type type, Op op, std::uint64_t a, std::uint64_t b) {
  const bool less = is_signed_integer(type)
                        ? static_cast<std::int64_t>(a) < static_cast<std::int64_t>(b) : a < b;
  switch (op) {
    case Op::product: return a * b;
    case Op::min: return less ? a : b;
    case Op::max: return less ? b : a;
    case Op::bit_and: return a & b;
    case Op::bit_or: return a | b;
    case Op::bit_xor: return a ^ b;
    case Op::logical_and: return a && b;
    case Op::logical_or: return a || b;
    case Op::logical_xor: return !a != !b;
    default: return a + b;
  }
}

inline std::uint64_t extended(Type type, std::uint64_t bits) {
  const std::size_t width = 8 * size_of(type);
  if (width == 64) return bits;
  const bool negative = is_signed_integer(type) && (bits >> (width - 1) & 1);
  const std::uint64_t high = ~0ull << width;
  return negative ? bits | high : bits & ~high;
}

inline std::uint64_t reference(Type type, Op op, const std::vector<std::uint64_t>& values) {
  if (values.size() == 1) return values[0];
  if (is_floating(type)) return reference_float(type, op, values);
  const bool truth = type == Type::boolean;
  std::uint64_t sum = truth ? values[0] != 0 : extended(type, values[0]);
  for (std::size_t k = 1; k < values.size(); ++k) {
    const std::uint64_t next = truth ? values[k] != 0 : extended(type, values[k]);
    sum = truth && op == Op::sum ? sum | next : combined(type, op, sum, next);
  }
  return sum;
}

// Returns an average: the sum divided, integers towards zero.
inline std::uint64_t quotient(Type type, std::uint64_t sum, int by) {
  if (is_floating(type))
    return encode(type, rounded_to_arithmetic(type, decode(type, sum) / by));
  const std::uint64_t wide = extended(type, sum);
  if (!is_signed_integer(type)) return wide / static_cast<std::uint64_t>(by);
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(wide) / by);
}

// --------------------------------------------------------------------------------------- data

struct Data {
  Type type;
  std::size_t count;
  std::vector<Bytes> sources;
  Bytes expected;
};

inline Data with_expected(Data data, Op op) {
  const std::size_t size = size_of(data.type);
  data.expected.resize(data.count * size);
  std::vector<std::uint64_t> values(data.sources.size());
  for (std::size_t i = 0; i < data.count; ++i) {
    for (std::size_t k = 0; k < values.size(); ++k) values[k] = bits_at(data.sources[k], i, size);
    const std::uint64_t bits = reference(data.type, op, values);
    std::memcpy(data.expected.data() + i * size, &bits, size);
  }
  return data;
}

// Zeros, infinities, NaNs with payloads of both kinds, the ends of the normal and subnormal ranges.
inline std::vector<std::uint64_t> specials(Type type) {
  const std::size_t width = 8 * size_of(type);
  const std::uint64_t sign = 1ull << (width - 1), mask = sign | (sign - 1);
  std::vector<std::uint64_t> list{0, 1, 2, 3, sign, sign - 1, sign | 1, mask, mask - 1};
  if (!is_floating(type)) return list;
  const Format f = format_of(type);
  const std::uint64_t least = 1ull << f.fraction_bits, quiet = least >> 1;
  const std::uint64_t infinity = ((1ull << f.exponent_bits) - 1) << f.fraction_bits;
  const std::uint64_t one = static_cast<std::uint64_t>(f.bias()) << f.fraction_bits;
  for (const std::uint64_t bits :
       {infinity, infinity | 1, infinity | quiet | 5, infinity - 1, infinity - 2, infinity - least,
        least, least - 1, least + 1, one, one + 1, one - 1, one + 12 * least, quiet})
    for (const std::uint64_t s : {std::uint64_t{0}, sign}) list.push_back(bits | s);
  return list;
}

// Mostly numbers whose sums round, so that order and precision show; some of everything else.
inline std::uint64_t draw(Type type, Random& random) {
  static const std::vector<std::vector<std::uint64_t>> kSpecials = [] {
    std::vector<std::vector<std::uint64_t>> lists;
    for (int t = 0; t < kTypes; ++t) lists.push_back(specials(Type(t)));
    return lists;
  }();
  const std::vector<std::uint64_t>& list = kSpecials[static_cast<std::size_t>(type)];
  const std::uint64_t bits = random(), kind = random() % 64;
  if (kind < 2) return list[bits % list.size()];
  if (kind < 10 || type == Type::boolean) return kind % 2 ? 0 : bits;
  if (!is_floating(type)) return bits;
  const double value = static_cast<double>(bits >> 11) * 0x1p-53 + 0.5;
  return encode(type, std::ldexp(bits & 1 ? -value : value, static_cast<int>(bits >> 1 & 7) - 4));
}

struct Shape {
  int sources;
  std::size_t count;
};

inline Data drawn(Type type, Shape shape) {
  Random random(1000003 * shape.count + static_cast<std::size_t>(shape.sources));
  const std::size_t size = size_of(type);
  Data data{type, shape.count, {}, {}};
  for (int k = 0; k < shape.sources; ++k) {
    Bytes& bytes = data.sources.emplace_back(shape.count * size);
    for (std::size_t i = 0; i < shape.count; ++i) {
      const std::uint64_t bits = draw(type, random);
      std::memcpy(bytes.data() + i * size, &bits, size);
    }
  }
  return data;
}

}  // namespace paceline::numbers
