// KernelTable: the functions of one instruction set, filled in at compile time.
//
// Inside src/kernels only (and its tests). A table must be constant-initialised: code of a target
// may not run, not even at start-up, before we know that the processor has its instructions.
#pragma once

#include <cstddef>

#include "kernels/kernels.hpp"

namespace paceline {

using Copy = void (*)(void* dst, const void* src, std::size_t bytes);
using Divide = void (*)(void* data, std::size_t count, int divisor);

struct KernelTable {
  Reduce reduce[kTypes][kOps];   // null where is_defined is false
  ReduceCopy reduce_copy[kTypes][kOps];   // likewise
  Divide divide[kTypes];         // null where average is not defined
  Copy copy;
  Copy stream;
  void (*nontemporal_fence)();
};

extern const KernelTable kPortableKernels;
#if defined(__x86_64__)
extern const KernelTable kAvx2Kernels;
extern const KernelTable kAvx512Kernels;
#endif

const KernelTable& kernel_table(Target target);   // throws if the processor lacks the target

}  // namespace paceline
