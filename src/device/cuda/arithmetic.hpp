// Arithmetic of the reduce kernels: loads numbers, combines two, and stores them.
//
// The rules are those of kernels/kernels.hpp, bit for bit. The file is compiled twice: by nvcc for
// the GPU, and by the host's compiler for the tests.
#pragma once

#ifdef __CUDACC__
#define PACELINE_BOTH __host__ __device__ __forceinline__
#else
#include <cstring>
#define PACELINE_BOTH inline
#endif

namespace paceline::device {

template <class To, class From>
PACELINE_BOTH To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}

PACELINE_BOTH float settled(float x) { return x == x ? x : bits_as<float>(0x7fc00000u); }
PACELINE_BOTH double settled(double x) {
  return x == x ? x : bits_as<double>(0x7ff8000000000000ull);
}
template <class T>
PACELINE_BOTH T settled(T x) {
  return x;
}

PACELINE_BOTH float from_half(unsigned short h) {
#ifdef __CUDA_ARCH__
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h));
  return x;
#else
  const unsigned sign = (h & 0x8000u) << 16, rest = h & 0x7fffu;
  if (rest >= 0x7c00u) return bits_as<float>(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
  if (rest >= 0x400u) return bits_as<float>(sign | ((rest << 13) + 0x38000000u));
  const float x = static_cast<float>(rest) * 0x1p-24f;   // a subnormal
  return sign ? -x : x;
#endif
}

PACELINE_BOTH unsigned short to_half(float x) {   // to nearest even
#ifdef __CUDA_ARCH__
  unsigned short h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
  return x == x ? h : 0x7e00;
#else
  const unsigned bits = bits_as<unsigned>(x), sign = bits >> 16 & 0x8000u;
  const unsigned size = bits & 0x7fffffffu;
  if (size > 0x7f800000u) return 0x7e00;
  if (size >= 0x47800000u) return static_cast<unsigned short>(sign | 0x7c00u);
  if (size < 0x38800000u) {   // below the least normal one: the addition rounds
    const float sum = bits_as<float>(size) + 0.5f;
    return static_cast<unsigned short>(sign | (bits_as<unsigned>(sum) - 0x3f000000u));
  }
  const unsigned even = size >> 13 & 1;
  return static_cast<unsigned short>(sign | (size - 0x38000000u + 0xfffu + even) >> 13);
#endif
}

PACELINE_BOTH float from_bfloat(unsigned short b) {
  return bits_as<float>(static_cast<unsigned>(b) << 16);
}
PACELINE_BOTH unsigned short to_bfloat(float x) {   // to nearest even
  const unsigned bits = bits_as<unsigned>(x);
  if (x != x) return 0x7fc0;
  return static_cast<unsigned short>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

// --- formats: T is the type in memory, X of operands, U of sums ---------------------------------

template <class Number, class Unsigned>
struct Plain {
  using T = Number;
  using X = Number;
  using U = Unsigned;   // unsigned for integers, so that sums wrap
  static constexpr bool kFloats = false, kTruth = false;
  PACELINE_BOTH static X load(T x) { return x; }
  PACELINE_BOTH static T store(X x) { return x; }
};

template <class Number>
struct Floating : Plain<Number, Number> {
  static constexpr bool kFloats = true;
  PACELINE_BOTH static Number store(Number x) { return settled(x); }
};

struct Half : Plain<unsigned short, float> {
  using X = float;
  static constexpr bool kFloats = true;
  PACELINE_BOTH static float load(unsigned short x) { return from_half(x); }
  PACELINE_BOTH static unsigned short store(float x) { return to_half(x); }
};

struct Bfloat : Plain<unsigned short, float> {
  using X = float;
  static constexpr bool kFloats = true;
  PACELINE_BOTH static float load(unsigned short x) { return from_bfloat(x); }
  PACELINE_BOTH static unsigned short store(float x) { return to_bfloat(x); }
};

struct Boolean : Plain<unsigned char, unsigned char> {
  static constexpr bool kTruth = true;
  PACELINE_BOTH static unsigned char load(unsigned char x) { return x != 0; }
};

// --- operations ---------------------------------------------------------------------------------

template <class F>
struct Sum {
  using X = typename F::X;
  using U = typename F::U;
  static constexpr bool kDivides = !F::kTruth;   // may be an average
  PACELINE_BOTH static X enter(X x) { return x; }
  PACELINE_BOTH static X join(X a, X x) {
    return static_cast<X>(static_cast<U>(static_cast<U>(a) + static_cast<U>(x)));
  }
};

// Products of 16-bit integers use unsigned arithmetic: 65535 * 65535 overflows a signed int.
template <class F>
struct Product : Sum<F> {
  static constexpr bool kDivides = false;
  using X = typename F::X;
  using U = typename F::U;
  PACELINE_BOTH static X join(X a, X x) {
    if constexpr (F::kFloats || sizeof(X) >= 4)
      return static_cast<X>(static_cast<U>(a) * static_cast<U>(x));
    else
      return static_cast<X>(static_cast<unsigned>(a) * static_cast<unsigned>(x));
  }
};

PACELINE_BOTH bool is_negative(float x) { return bits_as<unsigned>(x) >> 31; }
PACELINE_BOTH bool is_negative(double x) { return bits_as<unsigned long long>(x) >> 63; }

// A NaN stays; of two zeros the negative one is the smaller.
template <class F>
struct Min : Product<F> {
  using X = typename F::X;
  PACELINE_BOTH static X join(X a, X x) {
    if constexpr (F::kFloats) {
      if (a != a || x != x) return a != a ? a : x;
      if (a == x) return is_negative(a) ? a : x;
    }
    return x < a ? x : a;
  }
};

template <class F>
struct Max : Product<F> {
  using X = typename F::X;
  PACELINE_BOTH static X join(X a, X x) {
    if constexpr (F::kFloats) {
      if (a != a || x != x) return a != a ? a : x;
      if (a == x) return is_negative(a) ? x : a;
    }
    return a < x ? x : a;
  }
};

template <class F>
struct BitAnd : Product<F> {
  using X = typename F::X;
  PACELINE_BOTH static X join(X a, X x) { return static_cast<X>(a & x); }
};
template <class F>
struct BitOr : Product<F> {
  using X = typename F::X;
  PACELINE_BOTH static X join(X a, X x) { return static_cast<X>(a | x); }
};
template <class F>
struct BitXor : Product<F> {
  using X = typename F::X;
  PACELINE_BOTH static X join(X a, X x) { return static_cast<X>(a ^ x); }
};

// Results are 0 and 1; a NaN is true, and -0.0 is false.
template <class F>
struct LogicalAnd {
  using X = typename F::X;
  static constexpr bool kDivides = false;
  PACELINE_BOTH static X enter(X x) { return static_cast<X>(x != X(0)); }
  PACELINE_BOTH static X join(X a, X x) { return static_cast<X>(a != X(0) && x != X(0)); }
};
template <class F>
struct LogicalOr : LogicalAnd<F> {
  using X = typename F::X;
  PACELINE_BOTH static X join(X a, X x) { return static_cast<X>(a != X(0) || x != X(0)); }
};
template <class F>
struct LogicalXor : LogicalAnd<F> {
  using X = typename F::X;
  PACELINE_BOTH static X join(X a, X x) { return static_cast<X>((a != X(0)) != (x != X(0))); }
};

// Returns the value to store for a result. A sum of 16-bit floats is rounded before the division.
template <class F, class O>
PACELINE_BOTH typename F::T stored(typename F::X x, int divisor) {
  using X = typename F::X;
  typename F::T once = F::store(x);
  if constexpr (O::kDivides) {
    if (divisor == 1) return once;
    if constexpr (F::kFloats)
      once = F::store(F::load(once) / static_cast<X>(divisor));
    else if constexpr (sizeof(X) < sizeof(int))
      once = static_cast<typename F::T>(static_cast<int>(once) / divisor);
    else
      once = static_cast<typename F::T>(once / static_cast<X>(divisor));
  }
  return once;
}

}  // namespace paceline::device
