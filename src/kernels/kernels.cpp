// The choice among targets, made once, and the checks that kernels themselves do not make.
#include "kernels/kernels.hpp"

#include "base/error.hpp"
#include "kernels/table.hpp"

namespace paceline {
namespace {

struct Available {
  Target list[3] = {Target::portable};
  std::size_t count = 1;
};

Available detect() {
  Available found;
#if defined(__x86_64__)
  // Also asks the operating system whether it saves the wide registers.
  __builtin_cpu_init();
  const bool conversions = __builtin_cpu_supports("f16c") && __builtin_cpu_supports("fma");
  if (!conversions || !__builtin_cpu_supports("avx2")) return found;
  found.list[found.count++] = Target::avx2;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    found.list[found.count++] = Target::avx512;
#endif
  return found;
}

bool is_available(Target target) {
  for (const Target t : targets())
    if (t == target) return true;
  return false;
}

Target best() { return targets().back(); }

template <class Kernel>
Kernel defined(const Kernel (&table)[kTypes][kOps], Type type, Op op) {
  if (!is_defined(op, type))
    fail(Fault::refusal, "reduce: op '", name_of(op), "' is not defined for ", name_of(type),
         "; bitwise operations take integers or bool, average any type but bool.",
         " Use another op, or convert the data.");
  const Kernel kernel = table[static_cast<int>(type)][static_cast<int>(op)];
  require(kernel != nullptr, "no kernel for ", name_of(op), " on ", name_of(type));
  return kernel;
}

}  // namespace

std::span<const Target> targets() {
  static const Available found = detect();
  return {found.list, found.count};
}

std::string_view name_of(Target target) {
  switch (target) {
    case Target::portable: return "portable";
    case Target::avx2: return "avx2";
    case Target::avx512: return "avx512";
  }
  fail(Fault::internal, "internal: no target has number ", static_cast<int>(target));
}

const KernelTable& kernel_table(Target target) {
  if (!is_available(target))
    fail(Fault::refusal, "kernels: this processor lacks ", name_of(target),
         "; a kernel runs only where its instructions exist. Use ", name_of(best()), ".");
#if defined(__x86_64__)
  if (target == Target::avx512) return kAvx512Kernels;
  if (target == Target::avx2) return kAvx2Kernels;
#endif
  return kPortableKernels;
}

Reduce reduce_kernel(Type type, Op op) { return reduce_kernel(type, op, best()); }
ReduceCopy reduce_copy_kernel(Type type, Op op) { return reduce_copy_kernel(type, op, best()); }

Reduce reduce_kernel(Type type, Op op, Target target) {
  return defined(kernel_table(target).reduce, type, op);
}

ReduceCopy reduce_copy_kernel(Type type, Op op, Target target) {
  return defined(kernel_table(target).reduce_copy, type, op);
}

void copy(void* dst, const void* src, std::size_t bytes) {
  static const Copy kernel = kernel_table(best()).copy;
  kernel(dst, src, bytes);
}

void copy_nontemporal(void* dst, const void* src, std::size_t bytes) {
  static const Copy kernel = kernel_table(best()).stream;
  kernel(dst, src, bytes);
}

void nontemporal_fence() { kernel_table(best()).nontemporal_fence(); }

void divide(void* data, Type type, std::size_t count, int divisor) {
  if (!is_defined(Op::average, type))
    fail(Fault::refusal, "divide: ", name_of(type),
         " has no averages; all other types have. Use another op, or convert the data.");
  if (divisor == 0)
    fail(Fault::refusal, "divide: divisor is 0; it is the number of ranks, at least 1.");
  kernel_table(best()).divide[static_cast<int>(type)](data, count, divisor);
}

}  // namespace paceline
