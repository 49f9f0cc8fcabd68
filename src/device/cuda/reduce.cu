// Reduce kernels: each reads every source once, combines in registers, writes every target once.
//
// Each type and operation has one, called paceline_<type>_<op>. Targets and sources may be memory
// of this device, of a peer, or pinned memory of the host; a target may be one of the sources. No
// thread reads what another one writes, so a launch may have any shape.
#include "arithmetic.hpp"
#include "job.hpp"

namespace paceline::device {

// 16 bytes, loaded by one instruction.
template <class T>
struct alignas(16) Pack {
  static constexpr int kLanes = 16 / sizeof(T);
  T lanes[kLanes];
};

template <class F>
__device__ __forceinline__ const typename F::T* source(const ReduceJob& job, int k) {
  return static_cast<const typename F::T*>(job.sources[k]);
}

template <class F, class O>
__device__ __forceinline__ void reduce_one(const ReduceJob& job, unsigned long long i) {
  typename F::X sum = F::load(source<F>(job, 0)[i]);
  if (job.source_count > 1) sum = O::enter(sum);
  for (int k = 1; k < job.source_count; ++k) sum = O::join(sum, F::load(source<F>(job, k)[i]));
  const typename F::T result = stored<F, O>(sum, job.divisor);
  for (int k = 0; k < job.target_count; ++k)
    static_cast<typename F::T*>(job.targets[k])[i] = result;
}

// Reduces kAtOnce packs a stride apart: their loads overlap. Only sums of gradients' types use
// several, because each costs code.
template <class F, class O, int kAtOnce>
__device__ __forceinline__ void reduce_packs(const ReduceJob& job, unsigned long long first,
                                             unsigned long long stride) {
  using P = Pack<typename F::T>;
  typename F::X sum[kAtOnce][P::kLanes];
  for (int k = 0; k < job.source_count; ++k) {
    P loaded[kAtOnce];
#pragma unroll
    for (int t = 0; t < kAtOnce; ++t)
      loaded[t] = static_cast<const P*>(job.sources[k])[first + t * stride];
#pragma unroll
    for (int t = 0; t < kAtOnce; ++t)
#pragma unroll
      for (int lane = 0; lane < P::kLanes; ++lane) {
        const typename F::X x = F::load(loaded[t].lanes[lane]);
        if (k > 0)
          sum[t][lane] = O::join(sum[t][lane], x);
        else
          sum[t][lane] = job.source_count > 1 ? O::enter(x) : x;
      }
  }
#pragma unroll
  for (int t = 0; t < kAtOnce; ++t) {
    P result;
#pragma unroll
    for (int lane = 0; lane < P::kLanes; ++lane)
      result.lanes[lane] = stored<F, O>(sum[t][lane], job.divisor);
    for (int k = 0; k < job.target_count; ++k)
      static_cast<P*>(job.targets[k])[first + t * stride] = result;
  }
}

template <class F, class O>
__device__ __forceinline__ void reduce(const ReduceJob& job) {
  constexpr int kAtOnce = O::kDivides && sizeof(typename F::T) >= 2 ? 4 : 1;
  using P = Pack<typename F::T>;
  const unsigned long long stride = static_cast<unsigned long long>(gridDim.x) * blockDim.x;
  unsigned long long at = static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  unsigned long long done = 0;
  const unsigned long long mine = at;
  if (job.is_aligned) {
    const unsigned long long packs = job.count / P::kLanes;
    for (; at + (kAtOnce - 1) * stride < packs; at += kAtOnce * stride)
      reduce_packs<F, O, kAtOnce>(job, at, stride);
    for (; at < packs; at += stride) reduce_packs<F, O, 1>(job, at, stride);
    done = packs * P::kLanes;
  }
  for (unsigned long long i = done + mine; i < job.count; i += stride) reduce_one<F, O>(job, i);
}

}  // namespace paceline::device

#define PACELINE_KERNEL(type, format, op, operation)                                            \
  extern "C" __global__ void __launch_bounds__(512)                                             \
      paceline_##type##_##op(const __grid_constant__ paceline::device::ReduceJob job) {          \
    using F = format;                                                                            \
    paceline::device::reduce<F, paceline::device::operation<F>>(job);                            \
  }
#define PACELINE_ARITHMETIC(type, format)                   \
  PACELINE_KERNEL(type, format, sum, Sum)                    \
  PACELINE_KERNEL(type, format, product, Product)            \
  PACELINE_KERNEL(type, format, min, Min)                    \
  PACELINE_KERNEL(type, format, max, Max)                    \
  PACELINE_KERNEL(type, format, logical_and, LogicalAnd)     \
  PACELINE_KERNEL(type, format, logical_or, LogicalOr)       \
  PACELINE_KERNEL(type, format, logical_xor, LogicalXor)
#define PACELINE_BITS(type, format)                \
  PACELINE_KERNEL(type, format, bit_and, BitAnd)    \
  PACELINE_KERNEL(type, format, bit_or, BitOr)      \
  PACELINE_KERNEL(type, format, bit_xor, BitXor)
namespace paceline::device {
using I8 = Plain<signed char, unsigned char>;
using U8 = Plain<unsigned char, unsigned char>;
using I16 = Plain<short, unsigned short>;
using U16 = Plain<unsigned short, unsigned short>;
using I32 = Plain<int, unsigned>;
using U32 = Plain<unsigned, unsigned>;
using I64 = Plain<long long, unsigned long long>;
using U64 = Plain<unsigned long long, unsigned long long>;
using F32 = Floating<float>;
using F64 = Floating<double>;
}  // namespace paceline::device

PACELINE_ARITHMETIC(float64, paceline::device::F64)
PACELINE_ARITHMETIC(float32, paceline::device::F32)
PACELINE_ARITHMETIC(float16, paceline::device::Half)
PACELINE_ARITHMETIC(bfloat16, paceline::device::Bfloat)
PACELINE_ARITHMETIC(int8, paceline::device::I8)
PACELINE_ARITHMETIC(uint8, paceline::device::U8)
PACELINE_ARITHMETIC(int16, paceline::device::I16)
PACELINE_ARITHMETIC(uint16, paceline::device::U16)
PACELINE_ARITHMETIC(int32, paceline::device::I32)
PACELINE_ARITHMETIC(uint32, paceline::device::U32)
PACELINE_ARITHMETIC(int64, paceline::device::I64)
PACELINE_ARITHMETIC(uint64, paceline::device::U64)
PACELINE_BITS(int8, paceline::device::I8)
PACELINE_BITS(uint8, paceline::device::U8)
PACELINE_BITS(int16, paceline::device::I16)
PACELINE_BITS(uint16, paceline::device::U16)
PACELINE_BITS(int32, paceline::device::I32)
PACELINE_BITS(uint32, paceline::device::U32)
PACELINE_BITS(int64, paceline::device::I64)
PACELINE_BITS(uint64, paceline::device::U64)

// On bool a sum is "or" and a product "and".
PACELINE_KERNEL(bool, paceline::device::Boolean, sum, LogicalOr)
PACELINE_KERNEL(bool, paceline::device::Boolean, product, LogicalAnd)
PACELINE_KERNEL(bool, paceline::device::Boolean, min, LogicalAnd)
PACELINE_KERNEL(bool, paceline::device::Boolean, max, LogicalOr)
PACELINE_KERNEL(bool, paceline::device::Boolean, bit_and, LogicalAnd)
PACELINE_KERNEL(bool, paceline::device::Boolean, bit_or, LogicalOr)
PACELINE_KERNEL(bool, paceline::device::Boolean, bit_xor, LogicalXor)
PACELINE_KERNEL(bool, paceline::device::Boolean, logical_and, LogicalAnd)
PACELINE_KERNEL(bool, paceline::device::Boolean, logical_or, LogicalOr)
PACELINE_KERNEL(bool, paceline::device::Boolean, logical_xor, LogicalXor)
