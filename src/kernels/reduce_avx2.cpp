// AVX2 and F16C: vectors of 32 bytes. Empty on other processors.
#if defined(__x86_64__)

#if !defined(__AVX2__) || !defined(__F16C__)
#error "This file needs the compiler flags of src/kernels/flags.cmake."
#endif

#include "kernels/table.hpp"

#define PACELINE_VECTOR_BYTES 32
#include "kernels/reduce_impl.inc"

namespace paceline {

constinit const KernelTable kAvx2Kernels = make_table();

}  // namespace paceline

#endif
