// Every type and operation means what the header says.
#include <cmath>
#include <cstring>

#include "ranks.hpp"

namespace capi {
namespace {

constexpr int kCount = 5;

std::size_t size_of(paceline_type type) {
  constexpr std::size_t kSizes[] = {0, 8, 4, 2, 2, 1, 1, 2, 2, 4, 4, 8, 8, 1};
  return kSizes[type];
}

bool is_floating(paceline_type type) { return type <= PACELINE_BF16; }

template <class T>
void put(void* place, double value) {
  const T typed = static_cast<T>(value);
  std::memcpy(place, &typed, sizeof typed);
}

template <class T>
double get(const void* place) {
  T typed;
  std::memcpy(&typed, place, sizeof typed);
  return static_cast<double>(typed);
}

// For the small multiples of 0.5 that the tests have.
std::uint16_t half(double value) {
  if (value == 0) return 0;
  const int exponent = std::ilogb(value);
  return static_cast<std::uint16_t>((exponent + 15) << 10 |
                                    int((std::ldexp(value, -exponent) - 1) * 1024));
}

double from_half(std::uint16_t bits) {
  return bits == 0 ? 0 : std::ldexp(1 + (bits & 0x3ff) / 1024.0, (bits >> 10) - 15);
}

void write(paceline_type type, void* place, double value) {
  switch (type) {
    case PACELINE_F64: return put<double>(place, value);
    case PACELINE_F32: return put<float>(place, value);
    case PACELINE_F16: return put<std::uint16_t>(place, half(value));
    case PACELINE_BF16: {
      const float wide = static_cast<float>(value);
      std::memcpy(place, reinterpret_cast<const char*>(&wide) + 2, 2);
      return;
    }
    case PACELINE_I8: return put<std::int8_t>(place, value);
    case PACELINE_I16: return put<std::int16_t>(place, value);
    case PACELINE_U16: return put<std::uint16_t>(place, value);
    case PACELINE_I32: return put<std::int32_t>(place, value);
    case PACELINE_U32: return put<std::uint32_t>(place, value);
    case PACELINE_I64: return put<std::int64_t>(place, value);
    case PACELINE_U64: return put<std::uint64_t>(place, value);
    default: return put<std::uint8_t>(place, value);
  }
}

double read(paceline_type type, const void* place) {
  switch (type) {
    case PACELINE_F64: return get<double>(place);
    case PACELINE_F32: return get<float>(place);
    case PACELINE_F16: return from_half(static_cast<std::uint16_t>(get<std::uint16_t>(place)));
    case PACELINE_BF16: {
      float wide = 0;
      std::memcpy(reinterpret_cast<char*>(&wide) + 2, place, 2);
      return wide;
    }
    case PACELINE_I8: return get<std::int8_t>(place);
    case PACELINE_I16: return get<std::int16_t>(place);
    case PACELINE_U16: return get<std::uint16_t>(place);
    case PACELINE_I32: return get<std::int32_t>(place);
    case PACELINE_U32: return get<std::uint32_t>(place);
    case PACELINE_I64: return get<std::int64_t>(place);
    case PACELINE_U64: return get<std::uint64_t>(place);
    default: return get<std::uint8_t>(place);
  }
}

// Two numbers, both whole and small.
double combine(paceline_op op, paceline_type type, double a, double b) {
  const auto x = static_cast<unsigned>(a), y = static_cast<unsigned>(b);
  switch (op) {
    case PACELINE_SUM: return type == PACELINE_BOOL ? (x | y) : a + b;
    case PACELINE_PRODUCT: return a * b;
    case PACELINE_MIN: return std::min(a, b);
    case PACELINE_MAX: return std::max(a, b);
    case PACELINE_AVERAGE: return is_floating(type) ? (a + b) / 2 : std::floor((a + b) / 2);
    case PACELINE_BIT_AND: return x & y;
    case PACELINE_BIT_OR: return x | y;
    case PACELINE_BIT_XOR: return x ^ y;
    case PACELINE_LOGICAL_AND: return x && y;
    case PACELINE_LOGICAL_OR: return x || y;
    default: return !x != !y;
  }
}

// With a 0 among them, different for every rank and index; for bool all four pairs.
double value(paceline_type type, int rank, int index) {
  return type == PACELINE_BOOL ? index >> rank & 1 : rank * kCount + index;
}

bool is_defined(paceline_op op, paceline_type type) {
  if (op >= PACELINE_BIT_AND && op <= PACELINE_BIT_XOR) return !is_floating(type);
  return op != PACELINE_AVERAGE || type != PACELINE_BOOL;
}

TEST_CASE("every operation on every type, or a refusal") {
  with_ranks(2, [](paceline_comm* world, int rank) {
    int defined = 0, refused = 0;
    for (int t = PACELINE_F64; t <= PACELINE_BOOL; ++t)
      for (int o = PACELINE_SUM; o <= PACELINE_LOGICAL_XOR; ++o) {
        const auto type = static_cast<paceline_type>(t);
        const auto op = static_cast<paceline_op>(o);
        std::vector<char> x((kCount + 1) * size_of(type), 0x55), before = x;
        for (int i = 0; i < kCount; ++i)
          write(type, x.data() + i * size_of(type), value(type, rank, i));
        const auto status = paceline_allreduce(world, x.data(), x.data(), kCount, type, op);
        CAPTURE(t);
        CAPTURE(o);
        if (!is_defined(op, type)) {
          CHECK_FAULT(status, PACELINE_REFUSAL, "not defined");
          ++refused;
          continue;
        }
        ++defined;
        CHECK_OK(status);
        for (int i = 0; i < kCount; ++i)
          CHECK(read(type, x.data() + i * size_of(type)) ==
                combine(op, type, value(type, 0, i), value(type, 1, i)));
        const auto end = kCount * size_of(type);  // nothing is written behind the last element
        CHECK(std::equal(x.begin() + std::ptrdiff_t(end), x.end(),
                         before.begin() + std::ptrdiff_t(end)));
      }
    CHECK(defined + refused == 13 * 11);
    CHECK(refused == 4 * 3 + 1);
  });
}

}  // namespace
}  // namespace capi
